// A client of the real daemon, in the process of the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "railhead/railhead.h"

namespace railhead::epctl {

class Client {
 public:
  explicit Client(const std::string& socket, const char* job = "job-7") {
    rh_session_config config{};
    config.size = sizeof(config);
    config.daemon = socket.c_str();
    config.job = job;
    EXPECT_EQ(rh_session_open(&config, &session_), RH_OK) << rh_last_error();
  }
  ~Client() { rh_session_close(session_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // As rank 0 of a new group; waits for the other ranks.
  rh_status make_group(std::uint32_t ranks) {
    rh_unique_id id{};
    if (const rh_status made = make_id(id); made != RH_OK) return made;
    return join(id, 0, ranks);
  }
  rh_status make_id(rh_unique_id& id) { return rh_unique_id_create(session_, &id); }
  rh_status join(const rh_unique_id& id, std::uint32_t rank, std::uint32_t ranks) {
    rh_group_config group{};
    group.size = sizeof(group);
    group.ranks = ranks;
    group.rank = rank;
    group.experts = 4;
    group.hidden = 16;
    group.topk = 2;
    rh_group* made = nullptr;
    return rh_group_create(session_, &id, &group, &made);
  }

 private:
  rh_session* session_ = nullptr;
};

}  // namespace railhead::epctl
