#include "tools/ep-bench/launch/cluster.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "tools/ep-bench/launch/interrupt.hpp"
#include "tools/ep-bench/rank/member.hpp"

namespace railhead::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLook{100};     // between two looks at interrupts and progress
constexpr seconds kStartDeadline{20};  // of daemons and sessions
constexpr seconds kEndDeadline{3};
constexpr seconds kFollowDeadline{5};  // for the other ranks' answers after the first failure

std::string rank_name(std::uint32_t rank) {
  return "rank " + std::to_string(rank);
}

Status failure_of(std::uint32_t rank, const Answer& answer) {
  return {static_cast<Code>(answer.code), rank_name(rank) + ": " + answer.text};
}

}  // namespace

Result<std::unique_ptr<Cluster>> Cluster::start(const ClusterOptions& options) {
  const auto deadline = ipc::Deadline::after(kStartDeadline);
  auto folder = TempDir::make();
  if (!folder) return fail(folder.error());
  const auto nodes = *std::max_element(options.node_of_rank.begin(), options.node_of_rank.end()) + 1U;
  auto network = make_network(options.net, nodes);
  if (!network) return fail(network.error());
  auto control = Control::make(options.work.ranks());
  if (!control) return fail(control.error());
  std::unique_ptr<Cluster> made(new Cluster(options, std::move(*folder), std::move(*network), std::move(*control)));
  if (Status saved = save(options.work, made->folder_.file("workload.json")); !saved.ok()) return fail(saved);
  auto daemons = start_daemons(made->folder_, made->network_, {options.fault, options.pin_proxies}, deadline);
  if (!daemons) return fail(daemons.error());
  made->daemons_ = std::move(*daemons);
  made->ranks_.resize(options.work.ranks());
  for (std::uint32_t rank = 0; rank < options.work.ranks(); ++rank) {
    if (Status started = made->start_rank(rank); !started.ok()) return fail(started);
  }
  std::vector<Answer> ready(options.work.ranks());
  if (Status all = made->gather(ready, {}); !all.ok()) return fail(all);
  return made;
}

Cluster::~Cluster() {
  const auto deadline = ipc::Deadline::after(kEndDeadline);
  for (Rank& rank : ranks_) rank.channel.reset();  // a rank that has no launcher ends
  for (Rank& rank : ranks_) {
    while (rank.process.running() && !rank.process.ended() && !deadline.expired()) {
      static_cast<void>(poll(nullptr, 0, 1));
    }
    rank.process.send_signal(SIGKILL);
    rank.process.stop(deadline);
  }
  for (NodeDaemon& daemon : daemons_) daemon.process.send_signal(SIGTERM);
  for (NodeDaemon& daemon : daemons_) daemon.process.stop(ipc::Deadline::after(kEndDeadline));
}

Status Cluster::start_rank(std::uint32_t rank) {
  const auto self = own_path();
  if (!self) return self.error();
  int channel[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0) return system_status("socketpair", errno);
  ipc::UniqueFd ours(channel[0]);
  const ipc::UniqueFd theirs(channel[1]);
  const std::uint16_t node = options_.node_of_rank[rank];
  SpawnOptions spawn;
  spawn.network = network_.nodes[node].space.get();
  spawn.cores = network_.nodes[node].cores;
  spawn.pass = {{control_.fd(), kControlFd}, {theirs.get(), kChannelFd}};
  auto child = Child::spawn(rank_name(rank),
                            {*self, options_.rank_command, "--workload", folder_.file("workload.json"), "--daemon",
                             daemons_[node].socket, "--rank", std::to_string(rank)},
                            spawn);
  if (!child) return child.error();
  ranks_[rank] = {std::move(*child), std::move(ours)};
  return {};
}

Status Cluster::send(std::uint32_t rank, const Command& command) {
  if (::send(ranks_[rank].channel.get(), &command, sizeof(command), MSG_NOSIGNAL) == ssize_t{sizeof(command)})
    return {};
  return explain(system_status("command to " + rank_name(rank), errno));
}

Result<Answer> Cluster::read_answer(std::uint32_t rank) {
  Answer answer;
  const ssize_t got = recv(ranks_[rank].channel.get(), &answer, sizeof(answer), 0);
  if (got != ssize_t{sizeof(answer)}) {
    ranks_[rank].process.send_signal(SIGKILL);  // a rank that hung up is of no more use; mostly it is dead already
    std::optional<std::string> end;
    while (!(end = ranks_[rank].process.ended()) && ranks_[rank].process.running()) {
      static_cast<void>(poll(nullptr, 0, 1));
    }
    return fail(Code::rank_lost, end.value_or(rank_name(rank) + " is gone"));
  }
  answer.text[sizeof(answer.text) - 1] = 0;
  return answer;
}

// The ranks of `waiting` whose answer (or end) is there, at least one.
Status Cluster::wait_readable(std::vector<bool>& waiting, ipc::Deadline deadline, const Watch& watch,
                              std::vector<std::uint32_t>& ready) {
  std::vector<pollfd> polls;
  std::vector<std::uint32_t> who;
  for (std::uint32_t rank = 0; rank < waiting.size(); ++rank) {
    if (!waiting[rank]) continue;
    polls.push_back({ranks_[rank].channel.get(), POLLIN, 0});
    who.push_back(rank);
  }
  std::uint32_t seen = control_.progress();
  for (ready.clear(); ready.empty();) {
    if (std::exchange(seen, control_.progress()) != seen) deadline = this->deadline();  // the limit is for a standstill
    const std::string names = rank_name(who[0]) + (who.size() > 1 ? " and others" : "");
    if (Status go = keep_waiting(deadline, names.c_str()); !go.ok()) return go;
    if (watch) watch(control_.progress());
    if (poll(polls.data(), polls.size(), static_cast<int>(deadline.remaining(kLook).count())) <= 0) continue;
    for (std::size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents != 0) ready.push_back(who[i]);
    }
  }
  for (const std::uint32_t rank : ready) waiting[rank] = false;
  return {};
}

Status Cluster::gather(std::vector<Answer>& answers, const Watch& watch) {
  std::vector<bool> waiting(ranks_.size(), true);
  std::size_t left = ranks_.size();
  Status first;
  auto until = deadline();
  for (std::vector<std::uint32_t> ready; left > 0; left -= ready.size()) {
    if (Status go = wait_readable(waiting, until, watch, ready); !go.ok()) return explain(first.ok() ? go : first);
    for (const std::uint32_t rank : ready) {
      const auto answer = read_answer(rank);
      if (answer) answers[rank] = *answer;
      if (answer && answer->code == 0) continue;
      const Status why = answer ? failure_of(rank, *answer) : answer.error();
      // A rank that could not go on because of another is not the one to name.
      if (first.ok() || first.code() == Code::aborted) first = why;
      control_.give_up();
      until = ipc::Deadline::after(kFollowDeadline);
    }
  }
  return first.ok() ? first : explain(first);
}

Result<std::vector<Answer>> Cluster::order(const Command& command, const Watch& watch) {
  control_.set_progress(0);
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (Status sent = send(rank, command); !sent.ok()) return fail(sent);
  }
  std::vector<Answer> answers(ranks_.size());
  if (Status all = gather(answers, watch); !all.ok()) return fail(all);
  return answers;
}

Result<Answer> Cluster::receive(std::uint32_t rank) {
  std::vector<bool> waiting(ranks_.size(), false);
  waiting[rank] = true;
  std::vector<std::uint32_t> ready;
  if (Status go = wait_readable(waiting, deadline(), {}, ready); !go.ok()) return fail(go);
  auto answer = read_answer(rank);
  if (answer && answer->code != 0) return fail(failure_of(rank, *answer));
  return answer;
}

std::int64_t Cluster::kill_rank(std::uint32_t rank) {
  const std::int64_t at = now_ns();
  ranks_[rank].process.send_signal(SIGKILL);
  return at;
}

Status Cluster::replace_rank(std::uint32_t rank) {
  ranks_[rank].process.stop(ipc::Deadline::after(kEndDeadline));
  if (Status started = start_rank(rank); !started.ok()) return started;
  const auto ready = receive(rank);
  return ready ? Status() : ready.error();
}

ipc::Deadline Cluster::deadline() const {
  // The ranks' own deadlines come first: they know better what they waited for.
  return ipc::Deadline::after(seconds(options_.work.timeout_s) + kFollowDeadline);
}

// A failure may have its reason in a daemon's log, or in the end of a daemon.
Status Cluster::explain(const Status& status) {
  std::string text = status.message();
  for (NodeDaemon& daemon : daemons_) {
    const auto end = daemon.process.ended();
    if (end) text += "; " + *end;
    text += end_of_log(daemon.log);
  }
  return {status.code(), text};
}

}  // namespace railhead::bench
