// Hosts (a daemon process each) and ranks (a process each), and what is asserted about them again and again.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/lane.hpp"
#include "tests/support/processes.hpp"

namespace railhead::test {

class World {
 public:
  explicit World(std::uint32_t hosts, const std::vector<std::string>& flags = {}) : flags_(flags) {
    for (std::uint32_t h = 0; h < hosts; ++h) start_host(h);
  }

  // The same socket again after the death of the daemon behind it.
  void start_host(std::uint32_t h, const std::vector<std::string>& more = {},
                  const std::vector<std::string>& inside = {}) {
    if (hosts_.size() <= h) hosts_.resize(h + 1);
    std::vector<std::string> flags = flags_;
    flags.insert(flags.end(), more.begin(), more.end());
    hosts_[h] = std::make_unique<Epd>(folder_ / (std::to_string(h) + ".sock"), flags, inside);
  }
  [[nodiscard]] Epd& host(std::uint32_t h) { return *hosts_[h]; }
  [[nodiscard]] std::uint32_t hosts() const { return static_cast<std::uint32_t>(hosts_.size()); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }

  // Other users may reach what lies there.
  void open_folder() { std::filesystem::permissions(folder_ / "", std::filesystem::perms(0755)); }

  // A new process at this host, its session open.
  Rank& add_rank(std::uint32_t host, const std::string& open = "open", const std::vector<std::string>& inside = {}) {
    ranks_.push_back(new_process(host, {}, inside));
    const Reply opened = ranks_.back()->ask(open);
    EXPECT_EQ(opened.status, "ok") << opened.text;
    return *ranks_.back();
  }
  std::unique_ptr<Rank> new_process(std::uint32_t host, const std::vector<std::string>& more = {},
                                    const std::vector<std::string>& inside = {}) {
    std::vector<std::string> environment = {"IPATH_NO_BACKTRACE=1"};
    environment.insert(environment.end(), more.begin(), more.end());
    return std::make_unique<Rank>(RANK_PROGRAM, hosts_[host]->socket(), folder_ / "ranks.log", environment, inside);
  }
  [[nodiscard]] Rank& rank(std::size_t r) { return *ranks_[r]; }
  [[nodiscard]] std::size_t ranks() const { return ranks_.size(); }
  // A new process in the place of one that is gone.
  void replace_rank(std::size_t r, std::uint32_t host) {
    ranks_[r] = new_process(host);
    EXPECT_EQ(ranks_[r]->ask("open").status, "ok");
  }
  void forget_rank(std::size_t r) { ranks_[r].reset(); }
  void forget_ranks() { ranks_.clear(); }

  // Ranks at these hosts, in rank order, and a group of all of them.
  void populate(const std::vector<std::uint32_t>& host_of_rank, const std::string& parameters = {}) {
    for (const std::uint32_t h : host_of_rank) add_rank(h);
    make_group(everybody(), parameters);
  }
  [[nodiscard]] std::vector<std::size_t> everybody() const {
    std::vector<std::size_t> out;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r] != nullptr) out.push_back(r);
    }
    return out;
  }
  // These processes join as ranks 0, 1, ... The id comes from the first one's daemon.
  void make_group(const std::vector<std::size_t>& members, const std::string& parameters = {}) {
    for (const Reply& reply : join(members, parameters)) ASSERT_EQ(reply.status, "ok") << reply.text;
  }
  std::vector<Reply> join(const std::vector<std::size_t>& members, const std::string& parameters = {}) {
    const Reply id = rank(members[0]).ask("id");
    EXPECT_EQ(id.status, "ok") << id.text;
    for (std::size_t i = 0; i < members.size(); ++i) {
      rank(members[i])
          .send("join id=" + id.text + " ranks=" + std::to_string(members.size()) + " rank=" + std::to_string(i) + " " +
                parameters);
    }
    return replies(members);
  }
  void send(const std::vector<std::size_t>& to, const std::string& command) {
    for (const std::size_t r : to) rank(r).send(command);
  }
  std::vector<Reply> replies(const std::vector<std::size_t>& from, Milliseconds limit = Milliseconds(60'000)) {
    std::vector<Reply> out;
    out.reserve(from.size());
    for (const std::size_t r : from) out.push_back(rank(r).reply(limit));
    return out;
  }
  std::vector<Reply> ask(const std::vector<std::size_t>& whom, const std::string& command) {
    send(whom, command);
    return replies(whom);
  }
  void expect_good(const std::vector<std::size_t>& whom, const std::string& command) {
    for (const Reply& reply : ask(whom, command)) EXPECT_EQ(reply.status, "ok") << command << ": " << reply.text;
  }

  // What a daemon holds: descriptors, sessions, groups, arenas.
  struct Holdings {
    std::size_t fds = 0, sessions = 0, groups = 0, arenas = 0;
    bool operator==(const Holdings&) const = default;
  };
  // After a first group over all hosts: connections between daemons stay for the next one.
  std::vector<Holdings> settled_holdings() {
    std::vector<std::unique_ptr<Rank>> ranks;
    for (std::uint32_t h = 0; h < hosts(); ++h) ranks.push_back(new_process(h));
    for (const auto& rank : ranks) EXPECT_EQ(rank->ask("open").status, "ok");
    const Reply id = ranks[0]->ask("id");
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      ranks[r]->send("join id=" + id.text + " ranks=" + std::to_string(ranks.size()) + " rank=" + std::to_string(r));
    }
    for (const auto& rank : ranks) EXPECT_EQ(rank->reply().status, "ok");
    ranks.clear();
    std::vector<Holdings> out;
    for (std::uint32_t h = 0; h < hosts(); ++h) {
      EXPECT_TRUE(eventually([&] { return holdings(h).sessions == 0 && holdings(h).groups == 0; })) << "host " << h;
      out.push_back(steady_holdings(h));
    }
    return out;
  }
  Holdings holdings(std::uint32_t h) {
    Holdings out;
    // Before the count: the connection that asks is closed by then, or still open in both counts.
    out.sessions = host(h).snapshot("sessions")["sessions"].size();
    out.groups = host(h).snapshot("groups")["groups"].size();
    out.arenas = host(h).snapshot("arenas")["arenas"].size();
    out.fds = host(h).fds();
    return out;
  }
  // What it holds once connections that are being made are made. A look may still count the connection of the question
  // before it, so that the least of several looks counts: twice in a row the same.
  Holdings steady_holdings(std::uint32_t h) {
    constexpr int kLooks = 6;
    Holdings last;
    EXPECT_TRUE(eventually(
        [&] {
          Holdings least = holdings(h);
          for (int look = 1; look < kLooks; ++look) least.fds = std::min(least.fds, holdings(h).fds);
          const bool same = least == last;
          last = least;
          return same;
        },
        Milliseconds(20'000)));
    return last;
  }
  // Back to `base` within 5 s; descriptors may be fewer.
  void expect_freed(std::uint32_t h, const Holdings& base) {
    Holdings now;
    const bool freed = eventually([&] {
      now = holdings(h);
      return now.sessions == base.sessions && now.groups == base.groups && now.arenas == base.arenas &&
             now.fds <= base.fds;
    });
    EXPECT_TRUE(freed) << "host " << h << " holds " << now.fds << " fds, " << now.sessions << " sessions, "
                       << now.groups << " groups, " << now.arenas << " arenas; before " << base.fds << ", "
                       << base.sessions << ", " << base.groups << ", " << base.arenas << "\n"
                       << host(h).snapshot("why").dump() << host(h).snapshot("sessions").dump();
    EXPECT_TRUE(host(h).alive());
  }
  // The entry of `why` that fulfils the condition, waited for.
  Json why(std::uint32_t h, const std::function<bool(const Json&)>& condition) {
    Json found;
    Json last;
    const bool there = eventually([&] {
      last = host(h).snapshot("why");
      for (const Json& wait : last["waits"]) {
        if (!condition(wait)) continue;
        found = wait;
        return true;
      }
      return false;
    });
    EXPECT_TRUE(there) << last.dump();
    return found;
  }

 private:
  Folder folder_;
  std::vector<std::string> flags_;
  std::vector<std::unique_ptr<Epd>> hosts_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Prints what was measured, as one line that tools can find.
inline void print_times(const std::string& what, std::vector<double>& ms) {
  if (ms.empty()) return;
  std::sort(ms.begin(), ms.end());
  const auto at = [&](double q) {
    return ms[static_cast<std::size_t>(std::lround(q * static_cast<double>(ms.size() - 1)))];
  };
  std::printf("%s: n %zu, p50 %.2f ms, p99 %.2f ms, most %.2f ms\n", what.c_str(), ms.size(), at(0.5), at(0.99),
              ms.back());
}

}  // namespace railhead::test
