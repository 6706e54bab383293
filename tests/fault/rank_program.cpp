// A rank as a process, driven by lines: "COMMAND name=value ...". Each is answered by "NANOSECONDS ok TEXT" or
// "NANOSECONDS STATUS SENTENCE", the time being CLOCK_MONOTONIC when the call returned.
//
//   open [daemon=SOCKET] [job=LABEL]     session; the socket is the first argument of the program unless said
//   id                                   a unique id, in hex
//   join id= ranks= rank= [experts= hidden= topk= depth= channels= slots= chunk= join_ms= op_ms= abort_on_refusal=]
//   use group=N                          the N-th joined group is meant from now on
//   round [n= tokens= seed= layout=]     n dispatches with their combines, every value checked; endless: until an error
//   plan [tokens= seed=]                 the first half of a dispatch, which others then wait for
//   run                                  its second half
//   refused                              a call with a bad argument; answers its refusal
//   canary bytes=                        arena memory of the group with a pattern
//   check                                the pattern of all canaries, and that none changed
//   poke what=                           see tests/fault/poke.hpp
//
// and, without arguments unless said: status, registered (bytes of NIC memory), close, close_all, close_session, fork,
// exit code=, _exit code=, setuid uid= (and the group of the same number, no others)
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <vector>

#include "tests/fault/poke.hpp"
#include "tests/fault/rank_rounds.hpp"
#include "tests/support/child_process.hpp"

namespace railhead::test {
namespace {

using Words = std::map<std::string, std::string>;

std::uint32_t number(const Words& words, const std::string& name, std::uint32_t otherwise) {
  const auto found = words.find(name);
  return found == words.end() ? otherwise : static_cast<std::uint32_t>(std::stoul(found->second));
}

std::string text(const Words& words, const std::string& name, const std::string& otherwise) {
  const auto found = words.find(name);
  return found == words.end() ? otherwise : found->second;
}

struct Member {
  rh_group_config config;
  std::unique_ptr<Group> group;
  std::vector<Memory> canaries;
  std::unique_ptr<Outgoing> planned;
  std::vector<Handle> handles;
};

class Program {
 public:
  explicit Program(std::string socket) : socket_(std::move(socket)) {}

  void serve() {
    for (std::string line; std::getline(std::cin, line);) {
      std::string status = "ok";
      std::string out;
      try {
        out = run(line);
      } catch (const Error& e) {
        status = rh_status_name(e.status());
        out = e.what();
      } catch (const std::exception& e) {
        status = "wrong";
        out = e.what();
      }
      std::printf("%llu %s %s\n", static_cast<unsigned long long>(now_ns()), status.c_str(), out.c_str());
      std::fflush(stdout);
    }
  }

 private:
  std::string run(const std::string& line) {
    std::istringstream in(line);
    std::string name;
    in >> name;
    Words words;
    for (std::string word; in >> word;) {
      const std::size_t at = word.find('=');
      words[word.substr(0, at)] = at == std::string::npos ? "1" : word.substr(at + 1);
    }
    using Command = std::string (Program::*)(const Words&);
    static const std::map<std::string, Command> commands = {{"open", &Program::open},
                                                            {"id", &Program::id},
                                                            {"join", &Program::join},
                                                            {"use", &Program::use},
                                                            {"round", &Program::round},
                                                            {"plan", &Program::plan},
                                                            {"run", &Program::run_planned},
                                                            {"poke", &Program::poke_words},
                                                            {"refused", &Program::refused},
                                                            {"canary", &Program::canary},
                                                            {"check", &Program::check_canaries},
                                                            {"status", &Program::status},
                                                            {"registered", &Program::registered},
                                                            {"close", &Program::close},
                                                            {"close_session", &Program::close_session},
                                                            {"close_all", &Program::close_all},
                                                            {"fork", &Program::fork_child},
                                                            {"exit", &Program::leave},
                                                            {"_exit", &Program::leave_at_once},
                                                            {"setuid", &Program::become}};
    return (this->*commands.at(name))(words);
  }

  std::string open(const Words& words) {
    session_ = std::make_unique<Session>(text(words, "daemon", socket_), text(words, "job", ""));
    return {};
  }
  std::string id(const Words&) {
    const UniqueId made = session_->unique_id();
    std::string hex;
    for (const unsigned char byte : made.bytes) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", byte);
      hex += digits;
    }
    return hex;
  }
  std::string join(const Words& words) {
    auto config = make<rh_group_config>();
    config.ranks = number(words, "ranks", 1);
    config.rank = number(words, "rank", 0);
    config.experts = number(words, "experts", 2 * config.ranks);
    config.hidden = number(words, "hidden", 64);
    config.topk = number(words, "topk", 2);
    config.depth = number(words, "depth", 0);
    config.channels = number(words, "channels", 0);
    config.ring_slots = number(words, "slots", 0);
    config.chunk_bytes = number(words, "chunk", 0);
    config.join_timeout_ms = number(words, "join_ms", 20'000);
    config.op_timeout_ms = number(words, "op_ms", 60'000);
    config.abort_on_refusal = static_cast<int>(number(words, "abort_on_refusal", 0));
    UniqueId id{};
    const std::string hex = words.at("id");
    for (std::size_t i = 0; i < sizeof(id.bytes) && 2 * i + 1 < hex.size(); ++i) {
      id.bytes[i] = static_cast<unsigned char>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    }
    auto group = std::make_unique<Group>(*session_, id, config);
    members_.push_back({config, std::move(group), {}, nullptr, {}});
    current_ = members_.size() - 1;
    return std::to_string(current_);
  }
  std::string use(const Words& words) {
    current_ = number(words, "group", 0);
    return {};
  }
  std::string round(const Words& words) {
    RoundSpec spec;
    spec.tokens = number(words, "tokens", spec.tokens);
    spec.seed = number(words, "seed", spec.seed);
    spec.layout = static_cast<rh_layout>(number(words, "layout", 0));
    const bool endless = words.contains("endless");
    const std::uint32_t count = number(words, "n", 1);
    for (std::uint32_t i = 0; endless || i < count; ++i, ++spec.seed) {
      run_round(*member().group, member().config, spec);
    }
    return std::to_string(count);
  }
  std::string plan(const Words& words) {
    RoundSpec spec;
    spec.tokens = number(words, "tokens", spec.tokens);
    spec.seed = number(words, "seed", spec.seed);
    member().planned = std::make_unique<Outgoing>(member().config, member().config.rank, spec);
    auto [rows, handle] = member().group->plan(member().planned->args());
    member().handles.push_back(std::move(handle));
    return std::to_string(rows);
  }
  std::string run_planned(const Words&) {
    return std::to_string(member().group->run(member().handles.back(), nullptr, 0).row_count);
  }
  std::string poke_words(const Words& words) {
    poke(member().config, words.at("what"));
    return {};
  }
  std::string refused(const Words&) {
    auto args = make<rh_dispatch_args>();
    const std::int64_t id = member().config.experts + 5;
    std::vector<std::int64_t> ids(member().config.topk, id);
    std::vector<float> x(member().config.hidden);
    args.x = x.data();
    args.type = RH_FP32;
    args.tokens = 1;
    args.ids = ids.data();
    (void)member().group->dispatch(args);
    return "not refused";
  }
  std::string canary(const Words& words) {
    const std::uint32_t bytes = number(words, "bytes", 1 << 20);
    for (const rh_arena arena : {RH_ARENA_RECEIVE, RH_ARENA_COMBINE}) {
      Memory memory = member().group->alloc(arena, bytes);
      std::memset(memory.data(), kCanary, bytes);
      member().canaries.push_back(std::move(memory));
    }
    return {};
  }
  std::string check_canaries(const Words&) {
    std::size_t checked = 0;
    for (const Member& m : members_) {
      for (const Memory& memory : m.canaries) {
        const auto* const bytes = memory.as<unsigned char>();
        for (std::size_t i = 0; i < memory.bytes(); ++i, ++checked) {
          if (bytes[i] != kCanary) throw std::runtime_error("canary byte " + std::to_string(i) + " changed");
        }
      }
    }
    return std::to_string(checked);
  }
  std::string status(const Words&) {
    railhead::check(rh_group_status(member().group->get()));
    return {};
  }
  std::string registered(const Words&) { return std::to_string(member().group->info().registered_bytes); }
  std::string close(const Words&) {
    members_[current_] = Member{member().config, nullptr, {}, nullptr, {}};
    return {};
  }
  std::string close_all(const Words&) {
    members_.clear();
    return {};
  }
  std::string close_session(const Words&) {
    members_.clear();
    session_.reset();
    return {};
  }
  // The child lives until this process's input ends; it holds every descriptor and mapping. The reply says what the
  // library answers it.
  std::string fork_child(const Words&) {
    int answer[2];
    if (::pipe(answer) != 0) throw std::runtime_error("pipe failed");
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, 0);
      rh_session* session = nullptr;
      const auto status = static_cast<unsigned char>(rh_session_open(nullptr, &session));
      [[maybe_unused]] const ssize_t written = ::write(answer[1], &status, 1);
      for (;;) {
        pollfd input{STDIN_FILENO, 0, 0};
        if (::poll(&input, 1, -1) > 0 && (input.revents & POLLHUP) != 0) ::_exit(0);
      }
    }
    unsigned char status = 0;
    if (::read(answer[0], &status, 1) != 1) throw std::runtime_error("the child did not answer");
    ::close(answer[0]);
    ::close(answer[1]);
    return std::to_string(child) + " library says " + rh_status_name(static_cast<rh_status>(status));
  }
  // exit() runs static destructors and leaves the session to them: nothing is closed by hand.
  std::string leave(const Words& words) { std::exit(static_cast<int>(number(words, "code", 0))); }
  std::string leave_at_once(const Words& words) { ::_exit(static_cast<int>(number(words, "code", 0))); }
  std::string become(const Words& words) {
    const std::uint32_t id = number(words, "uid", 0);
    if (::setgroups(0, nullptr) != 0 || ::setgid(id) != 0 || ::setuid(id) != 0) {
      throw std::runtime_error("setgroups, setgid or setuid failed");
    }
    return {};
  }

  Member& member() { return members_.at(current_); }

  static constexpr unsigned char kCanary = 0xa5;
  std::string socket_;
  std::unique_ptr<Session> session_;
  std::vector<Member> members_;
  std::size_t current_ = 0;
};

}  // namespace
}  // namespace railhead::test

int main(int argc, char** argv) {
  railhead::test::Program(argc > 1 ? argv[1] : "").serve();
  return 0;
}
