#include "ipc/rpc.hpp"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>

#include <algorithm>

namespace railhead::ipc {
namespace {

class FileServer final : public schema::File::Server {
 public:
  explicit FileServer(kj::AutoCloseFd fd) : fd_(kj::mv(fd)) {}
  kj::Maybe<int> getFd() override { return fd_.get(); }

 private:
  kj::AutoCloseFd fd_;
};

}  // namespace

schema::File::Client share(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  KJ_REQUIRE(copy >= 0, "this process has no descriptor left");
  return kj::heap<FileServer>(kj::AutoCloseFd(copy));
}

kj::Promise<UniqueFd> fetch(schema::File::Client file) {
  auto promise = file.getFd();
  return promise.then([file = kj::mv(file)](kj::Maybe<int> fd) mutable -> UniqueFd {
    KJ_IF_MAYBE (number, fd) {
      return UniqueFd(::fcntl(*number, F_DUPFD_CLOEXEC, 0));
    }
    return {};
  });
}

void fill(schema::Error::Builder out, const Status& status) {
  out.setCode(static_cast<std::uint16_t>(status.code()));
  out.setMessage(status.message());
}

Result<void> check(schema::Error::Reader error) {
  if (error.getCode() == 0) return {};
  return fail(static_cast<Code>(error.getCode()), error.getMessage().cStr());
}

void fill(schema::GroupParams::Builder out, const GroupParams& in) {
  out.setRanks(in.ranks);
  out.setExperts(in.experts);
  out.setHidden(in.hidden);
  out.setTopk(in.topk);
  out.setSideBytes(in.side_bytes);
  out.setChannels(in.channels);
  out.setDepth(in.depth);
  out.setRingSlots(in.ring_slots);
  out.setChunkBytes(in.chunk_bytes);
  out.setMaxHandles(in.max_handles);
  out.setAbortOnRefusal(in.abort_on_refusal);
  auto list = out.initExpertRank(static_cast<capnp::uint>(in.expert_rank.size()));
  for (capnp::uint i = 0; i < list.size(); ++i) list.set(i, in.expert_rank[i]);
}

GroupParams read(schema::GroupParams::Reader in) {
  GroupParams out;
  out.ranks = in.getRanks();
  out.experts = in.getExperts();
  out.hidden = in.getHidden();
  out.topk = in.getTopk();
  out.side_bytes = in.getSideBytes();
  out.channels = in.getChannels();
  out.depth = in.getDepth();
  out.ring_slots = in.getRingSlots();
  out.chunk_bytes = in.getChunkBytes();
  out.max_handles = in.getMaxHandles();
  out.abort_on_refusal = in.getAbortOnRefusal();
  for (const std::uint32_t rank : in.getExpertRank()) out.expert_rank.push_back(rank);
  return out;
}

}  // namespace railhead::ipc
