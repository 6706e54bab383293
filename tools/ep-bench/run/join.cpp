#include "tools/ep-bench/run/join.hpp"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tools/ep-bench/launch/interrupt.hpp"
#include "tools/ep-bench/rank/member.hpp"

namespace railhead::bench {
namespace {

// Written under another name first: a reader sees the whole id or no file.
Status write_id(const std::string& path, const UniqueId& id) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file.write(reinterpret_cast<const char*>(id.bytes), sizeof(id.bytes));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(part, path, error);
  if (file && !error) return {};
  return {Code::system, "cannot write the group's id to " + path + (error ? ": " + error.message() : "")};
}

Result<UniqueId> read_id(const std::string& path, ipc::Deadline deadline) {
  for (;;) {
    UniqueId id;
    std::ifstream file(path, std::ios::binary);
    if (file.read(reinterpret_cast<char*>(id.bytes), sizeof(id.bytes))) return id;
    if (Status go = keep_waiting(deadline, ("the group's id in " + path).c_str()); !go.ok()) return fail(go);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Status shape_fits(const Group& group, const Workload& work, std::uint32_t rank) {
  const auto info = group.info();
  if (info.domains == work.domains() && info.domain == work.domain_of_rank[rank]) return {};
  return {Code::invalid_argument, "the ranks are on " + std::to_string(info.domains) +
                                      " nodes and this one is on node " + std::to_string(info.domain) +
                                      ", but --nodes, --ranks and --order say " + std::to_string(work.domains()) +
                                      " and " + std::to_string(work.domain_of_rank[rank])};
}

// Every rank has called when it is complete.
void meet(const Group& group) {
  group.dispatch(make<rh_dispatch_args>());
}

Status rounds(Member& member, const RunOptions& options, Summary& summary) {
  for (std::uint64_t round = 0; round < std::uint64_t{options.warmup} + options.rounds; ++round) {
    if (interrupted()) return {Code::aborted, "interrupted"};
    RoundSample sample;
    member.prepare(round, options.verify);
    meet(member.group());
    member.run(sample);
    if (options.verify) {
      if (Status right = member.verify(round); !right.ok()) return right;
    }
    member.finish(sample);
    if (round >= options.warmup) summary.add({sample});
  }
  return {};
}

}  // namespace

Result<Summary> join_as_rank(const RunOptions& options, const Workload& work) {
  const std::uint32_t rank = *options.rank;
  Summary summary(work.ranks());
  try {
    Member member(work, rank);
    if (Status opened = member.open(); !opened.ok()) return fail(opened);
    const Session session(options.join, "ep-bench");
    UniqueId id;
    if (rank == 0) {
      id = session.unique_id();
      if (Status written = write_id(options.id_file, id); !written.ok()) return fail(written);
    } else {
      auto read = read_id(options.id_file, ipc::Deadline::after(std::chrono::seconds(work.timeout_s)));
      if (!read) return fail(read.error());
      id = *read;
    }
    member.join(session, id);
    if (rank == 0) std::filesystem::remove(options.id_file);
    if (Status fits = shape_fits(member.group(), work, rank); !fits.ok()) return fail(fits);
    if (Status done = rounds(member, options, summary); !done.ok()) return fail(done);
    return summary;
  } catch (const Error& error) {
    return fail(status_of(error));
  }
}

}  // namespace railhead::bench
