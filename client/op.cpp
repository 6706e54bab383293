#include "client/op.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace railhead::client {
namespace {

constexpr std::size_t kReleasesPerHeader = std::size(ipc::OpHeader{}.releases);

}  // namespace

const char* op_name(ipc::OpKind kind) noexcept {
  switch (kind) {
    case ipc::OpKind::dispatch: return "dispatch";
    case ipc::OpKind::combine: return "combine";
    case ipc::OpKind::none: break;
  }
  return "none";
}

void Op::admit(GroupContext& /*group*/, std::uint64_t number) noexcept {
  number_ = number;
}

void Op::conclude(const Status& result) noexcept {
  times_.done_ns = ipc::steady_ns();
  times_.headers_ns = std::min(times_.headers_ns, times_.done_ns);  // others wrote it
  try {
    result_ = result;
  } catch (const std::bad_alloc&) {
    result_ = Status(result.code(), {});  // without its sentence
  }
  concluded_ = true;
}

void Op::finish_once(GroupContext& group) {
  if (finished_) return;
  finish(group);
  finished_ = true;
}

bool Op::publish(GroupContext& group, const kernels::Plan& plan) {
  if (published_) return true;
  if (!on_board_) {
    if (!group.words.window_open(number_)) return false;
    rows_.resize(group.shape.ranks());
    header_.op = number_;
    header_.called_ns = times_.called_ns;
    header_.epoch = group.shape.epoch();
    header_.kind = static_cast<std::uint8_t>(kind_);
    take_releases(group);
    ipc::store_relaxed(group.words.live(group.local).planned, number_);  // relaxed: read by the daemon after our death
    group.words.publish_header(group.rank, ipc::GroupSegment::Origin::this_domain, header_, plan.slice(group.domain));
    on_board_ = true;
    missing_ = group.shape.ranks();
    locals_missing_ = group.locals();
  }
  published_ = publish_remote(group, plan);
  return published_;
}

void Op::take_releases(GroupContext& group) {
  std::uint32_t count = 0;
  for (const Release& release : group.releases) {
    if (release.earliest > number_ || count == kReleasesPerHeader) break;
    header_.releases[count++] = release.handle_op;
  }
  header_.release_count = count;
  group.releases.erase(group.releases.begin(), group.releases.begin() + count);
}

bool Op::publish_remote(GroupContext& group, const kernels::Plan& plan) {
  for (; next_domain_ + 1 < group.shape.domains(); ++next_domain_) {
    const std::size_t domain = next_domain_ + (next_domain_ >= group.domain ? 1 : 0);
    const auto slice = plan.slice(static_cast<std::uint16_t>(domain));
    std::byte* const slot = group.rail->header_slot(static_cast<std::uint32_t>(next_domain_), number_);
    ipc::OpHeader header = header_;
    header.checksum = ipc::header_checksum(header, slice.data(), slice.size());
    std::memcpy(slot, &header, sizeof(header));
    std::memcpy(slot + sizeof(header), slice.data(), slice.size_bytes());
    if (!group.rail->submit_header(static_cast<std::uint32_t>(next_domain_), number_,
                                   static_cast<std::uint32_t>(slice.size()))) {
      return false;
    }
  }
  return true;
}

Result<bool> Op::collect(GroupContext& group) {
  if (missing_ == 0) return true;
  for (std::uint32_t r = 0; r < group.shape.ranks(); ++r) {
    if (rows_[r].header != nullptr) continue;
    const ipc::GroupSegment::Row row = group.words.header(r, number_);
    if (row.header == nullptr) {
      const std::uint64_t left = group.words.left(r);
      if (left == 0 || left > number_) continue;
      // Looked at again: the rank may have published just before it left.
      if (group.words.header(r, number_).header != nullptr) continue;
      // Written before the word that was just read: who left first, and why.
      return fail(Code::rank_lost, group.words.end_text() + "; rank " + std::to_string(r) + " takes no part in " +
                                       op_name(kind_) + " op " + std::to_string(number_));
    }
    if (const std::string differs = ipc::disagreement(header_, *row.header); !differs.empty()) {
      return fail(Code::mismatch, "op " + std::to_string(number_) + " differs between rank " +
                                      std::to_string(group.rank) + " and rank " + std::to_string(r) + " in " + differs +
                                      "; every rank must make the same calls in the same order");
    }
    rows_[r] = row;
    --missing_;
    if (group.shape.domain_of(r) == group.domain) --locals_missing_;
    if (row.header->called_ns >= times_.headers_ns) {
      times_.headers_ns = row.header->called_ns;
      times_.last_rank = static_cast<std::int32_t>(r);
    }
    const std::uint32_t releases = std::min<std::uint32_t>(row.header->release_count, kReleasesPerHeader);
    for (std::uint32_t i = 0; i < releases && r != group.rank; ++i) group.handles.ended(row.header->releases[i], r);
  }
  return missing_ == 0;
}

Waiting Op::waiting_for_headers(const GroupContext& group) const {
  if (!on_board_) {
    Waiting out{ipc::WaitPhase::window, ipc::Poison::kNoRank, 0, group.locals()};
    for (std::uint32_t l = 0; l < group.locals(); ++l) {
      if (group.words.completed(l) + group.shape.params().depth >= number_) {
        ++out.got;
      } else {
        out.peer = static_cast<std::uint16_t>(group.rank_of_local(l));
      }
    }
    return out;
  }
  Waiting out{ipc::WaitPhase::headers, ipc::Poison::kNoRank, group.shape.ranks() - missing_, group.shape.ranks()};
  for (std::uint32_t r = 0; r < group.shape.ranks(); ++r) {
    if (rows_[r].header == nullptr) {
      out.peer = static_cast<std::uint16_t>(r);
      break;
    }
  }
  return out;
}

}  // namespace railhead::client
