// Groups that cannot be: parameters out of range or different between ranks; and groups whose ranks disagree on a call.
#include <gtest/gtest.h>

#include <barrier>
#include <future>

#include "tests/conformance/refusals.hpp"

namespace railhead::test {
namespace {

constexpr std::uint32_t kMap[kSmallExperts] = {0, 1, 2, 0};

class RefusedGroup : public Refused {
 protected:
  std::vector<std::uint16_t> hosts() const {
    const auto other = last_host();
    return {0, other, other};
  }
  // f(rank, group, call, result, handle) on each of three ranks when a dispatch is complete on all.
  template <class Function>
  void after_a_dispatch(Function f) {
    std::barrier all_done(3);
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, small_config(3, rank));
      SmallCall call;
      const auto [result, handle] = group.dispatch(call.args);
      all_done.arrive_and_wait();
      f(rank, group, call, result, handle);
    });
  }
};

struct Different {
  const char* field;
  void (*change)(rh_group_config&);
  const char* usual;
  const char* changed;
};

constexpr Different kDifferent[] = {
    {"experts", [](rh_group_config& c) { c.experts = 5; }, "4", "5"},
    {"hidden", [](rh_group_config& c) { c.hidden = 17; }, "16", "17"},
    {"topk", [](rh_group_config& c) { c.topk = 3; }, "2", "3"},
    {"side_bytes", [](rh_group_config& c) { c.side_bytes = 9; }, "8", "9"},
    {"channels", [](rh_group_config& c) { c.channels = 5; }, "1", "5"},
    {"depth", [](rh_group_config& c) { c.depth = 3; }, "2", "3"},
    {"ring_slots", [](rh_group_config& c) { c.ring_slots = 7; }, "0", "7"},
    {"chunk_bytes", [](rh_group_config& c) { c.chunk_bytes = 4096; }, "0", "4096"},
    {"max_handles", [](rh_group_config& c) { c.max_handles = 6; }, "4", "6"},
    {"abort_on_refusal", [](rh_group_config& c) { c.abort_on_refusal = 1; }, "0", "1"},
    {"expert_to_rank", [](rh_group_config& c) { c.expert_to_rank = kMap; }, "expert_to_rank[1]: 0 (default)", "1 on"},
    {"ranks", [](rh_group_config& c) { c.ranks = 4; }, "3", "4"},
};

// B45: creation fails on every rank and names the field, the ranks and their values; nothing stays behind.
TEST_P(RefusedGroup, ParametersThatDifferAreNamedOnAllRanks) {
  for (const Different& d : kDifferent) {
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = small_config(3, rank);
      if (rank == 1) d.change(config);
      rh_group* group = nullptr;
      EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_MISMATCH) << d.field << rh_last_error();
      EXPECT_EQ(group, nullptr);
      const std::string text = rh_last_error();
      for (const char* piece : {d.field, d.usual, d.changed, "rank 1"}) {
        EXPECT_NE(text.find(piece), std::string::npos) << d.field << " lacks " << piece << ": " << text;
      }
    });
  }
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    good_round(Group(session, id, small_config(3, rank)).get());
  });
}

// Also a rank that comes when the others have failed already.
TEST_P(RefusedGroup, ALateRankLearnsTheSameReason) {
  std::promise<void> refused;
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    rh_group_config config = small_config(3, rank);
    if (rank == 1) config.hidden = 17;
    if (rank == 2) refused.get_future().wait();
    rh_group* group = nullptr;
    EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_MISMATCH) << rh_last_error();
    EXPECT_NE(std::string(rh_last_error()).find("hidden"), std::string::npos) << rh_last_error();
    if (rank == 0) refused.set_value();
  });
}

struct OutOfRange {
  const char* says;
  void (*change)(rh_group_config&);
};
constexpr std::uint32_t kBadMap[kSmallExperts] = {0, 1, 3, 0};
constexpr OutOfRange kOutOfRange[] = {
    {"ranks is 0", [](rh_group_config& c) { c.ranks = 0; }},
    {"ranks is 5000", [](rh_group_config& c) { c.ranks = 5000; }},
    {"rank is 3", [](rh_group_config& c) { c.rank = 3; }},
    {"experts is 0", [](rh_group_config& c) { c.experts = 0; }},
    {"experts is 70000", [](rh_group_config& c) { c.experts = 70'000; }},
    {"hidden is 1048577, allowed is 1 to 1048576", [](rh_group_config& c) { c.hidden = 1'048'577; }},
    {"chunk_bytes is 1073741825, allowed is 0 to 1073741824",
     [](rh_group_config& c) { c.chunk_bytes = (1U << 30) + 1; }},
    {"max_handles is 65537, allowed is 1 to 65536", [](rh_group_config& c) { c.max_handles = 65'537; }},
    {"max_handles is 4294967295", [](rh_group_config& c) { c.max_handles = UINT32_MAX; }},
    {"hidden is 0", [](rh_group_config& c) { c.hidden = 0; }},
    {"topk is 0", [](rh_group_config& c) { c.topk = 0; }},
    {"topk is 257", [](rh_group_config& c) { c.topk = 257; }},
    {"channels is 65", [](rh_group_config& c) { c.channels = 65; }},
    {"depth is 9", [](rh_group_config& c) { c.depth = 9; }},
    {"ring_slots is 257", [](rh_group_config& c) { c.ring_slots = 257; }},
    {"side_bytes is 65537", [](rh_group_config& c) { c.side_bytes = 65'537; }},
    {"expert_rank[2] is 3", [](rh_group_config& c) { c.expert_to_rank = kBadMap; }},
    {"rh_group_config.size is 0", [](rh_group_config& c) { c.size = 0; }},
};

// Refused at the caller before it joins: the same id works afterwards.
TEST_P(RefusedGroup, ParametersOutOfRangeAreNamedAndTheIdStaysGood) {
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    for (const OutOfRange& bad : kOutOfRange) {
      rh_group_config config = small_config(3, rank);
      bad.change(config);
      rh_group* group = nullptr;
      EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_INVALID_ARGUMENT) << bad.says;
      EXPECT_NE(std::string(rh_last_error()).find(bad.says), std::string::npos) << bad.says << ": " << rh_last_error();
      EXPECT_EQ(group, nullptr);
    }
    good_round(Group(session, id, small_config(3, rank)).get());
  });
}

// Within what is possible, but beyond what this daemon's operator allows.
TEST_P(RefusedGroup, TheDaemonsLimitsAreNamedAndTheIdStaysGood) {
  const OutOfRange limits[] = {
      {"max_handles is 2000, limits.handles is 1024", [](rh_group_config& c) { c.max_handles = 2000; }},
      {"ranks is 1500, limits.ranks is 1024", [](rh_group_config& c) { c.ranks = 1500; }},
  };
  cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
    for (const OutOfRange& bad : limits) {
      rh_group_config config = small_config(3, rank);
      bad.change(config);
      rh_group* group = nullptr;
      EXPECT_EQ(rh_group_create(session.get(), &id, &config, &group), RH_LIMIT_EXCEEDED) << rh_last_error();
      EXPECT_NE(std::string(rh_last_error()).find(bad.says), std::string::npos) << bad.says << ": " << rh_last_error();
      EXPECT_EQ(group, nullptr);
    }
    good_round(Group(session, id, small_config(3, rank)).get());
  });
}

// The call ends with this status, and the sentence has these pieces.
void expect_told(std::uint32_t rank, const std::function<void()>& call, rh_status status,
                 const std::vector<std::string>& says) {
  try {
    call();
    ADD_FAILURE() << "rank " << rank << " was not told";
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    for (const std::string& piece : says) EXPECT_NE(std::string(e.what()).find(piece), std::string::npos) << e.what();
  }
}

struct Disagreement {
  const char* says;
  void (*change)(rh_dispatch_args&);
};
constexpr Disagreement kDisagreements[] = {
    {"layout: ", [](rh_dispatch_args& a) { a.layout = RH_LAYOUT_RANK; }},
    {"element type: ", [](rh_dispatch_args& a) { a.type = RH_BF16; }},
    {"alignment: ", [](rh_dispatch_args& a) { a.align = 4; }},
    {"side bytes: ", [](rh_dispatch_args& a) { a.side_bytes = 4; }},
};

// Different calls under one number: an error with the field and two ranks on all of them, never wrong data.
TEST_P(RefusedGroup, CallsThatDifferEndTheGroupOnAllRanks) {
  for (const Disagreement& d : kDisagreements) {
    std::barrier all_done(3);  // the end of a group also ends what is still in flight on others
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, small_config(3, rank));
      good_round(group.get());
      all_done.arrive_and_wait();
      SmallCall call;
      if (rank == 2) d.change(call.args);
      auto result = make<rh_dispatch_result>();
      rh_handle* handle = nullptr;
      EXPECT_EQ(rh_dispatch(group.get(), &call.args, &result, &handle, nullptr), RH_MISMATCH) << rh_last_error();
      const std::string text = rh_last_error();
      EXPECT_NE(text.find(d.says), std::string::npos) << text;
      EXPECT_NE(text.find("op 3"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 2"), std::string::npos) << text;
      EXPECT_EQ(result.rows, nullptr);
      EXPECT_EQ(rh_group_status(group.get()), RH_MISMATCH);
    });
  }
}

struct CombineDisagreement {
  const char* says;
  const char* usual;
  const char* changed;
  void (*change)(rh_combine_args&, rh_handle* other);
};
constexpr CombineDisagreement kCombineDisagreements[] = {
    {"element type: ", "fp32", "bf16", [](rh_combine_args& a, rh_handle*) { a.type = RH_BF16; }},
    {"wire type: ", "fp32", "bf16", [](rh_combine_args& a, rh_handle*) { a.wire_type = RH_BF16; }},
    {"weighted: ", "no", "yes", [](rh_combine_args& a, rh_handle*) { a.weighted = 1; }},
    {"handle: ", "of op 1", "of op 2", [](rh_combine_args& a, rh_handle* other) { a.handle = other; }},
};

TEST_P(RefusedGroup, CombinesThatDifferEndTheGroupOnAllRanks) {
  for (const CombineDisagreement& d : kCombineDisagreements) {
    std::barrier all_done(3);
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      const Group group(session, id, small_config(3, rank));
      SmallCall call;
      const auto [result, handle] = group.dispatch(call.args);
      const auto [other_result, other] = group.dispatch(call.args);
      all_done.arrive_and_wait();
      rh_combine_args combine = call.combine_args(result, handle.get());
      if (rank == 2) d.change(combine, other.get());
      EXPECT_EQ(rh_combine(group.get(), &combine, nullptr), RH_MISMATCH) << d.says << rh_last_error();
      const std::string text = rh_last_error();
      for (const char* piece : {d.says, d.usual, d.changed, "op 3", "rank 2"}) {
        EXPECT_NE(text.find(piece), std::string::npos) << d.says << " lacks " << piece << ": " << text;
      }
      EXPECT_EQ(rh_group_status(group.get()), RH_MISMATCH);
    });
  }
}

TEST_P(RefusedGroup, ACachedDispatchAgainstAFreshOneEndsTheGroupOnAllRanks) {
  after_a_dispatch([](std::uint32_t rank, const Group& group, SmallCall& call, const auto&, const Handle& handle) {
    if (rank == 2) call.args.cached = handle.get();
    expect_told(rank, [&] { group.dispatch(call.args); }, RH_MISMATCH, {"cached: ", "rank 2"});
  });
}

TEST_P(RefusedGroup, CombineAgainstDispatchEndsTheGroupOnAllRanks) {
  after_a_dispatch(
      [](std::uint32_t rank, const Group& group, SmallCall& call, const auto& result, const Handle& handle) {
        const auto differ = [&] {
          if (rank == 0) {
            group.combine(call.combine_args(result, handle.get()));
          } else {
            group.dispatch(call.args);
          }
        };
        expect_told(rank, differ, RH_MISMATCH, {"kind"});
      });
}

// abort_on_refusal: whatever kind of refusal it is, all ranks learn who and why.
TEST_P(RefusedGroup, AbortOnRefusal) {
  using Refuse = rh_status (*)(rh_group*);
  const Refuse kinds[] = {
      [](rh_group* g) {
        SmallCall call;
        call.ids[0] = 99;
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        return rh_dispatch(g, &call.args, &result, &handle, nullptr);
      },
      [](rh_group* g) {
        const auto args = make<rh_combine_args>();
        return rh_combine(g, &args, nullptr);
      },
      [](rh_group* g) {
        SmallCall call;
        call.args.size = 0;
        auto result = make<rh_dispatch_result>();
        rh_handle* handle = nullptr;
        return rh_dispatch(g, &call.args, &result, &handle, nullptr);
      },
  };
  for (const Refuse refuse : kinds) {
    std::barrier all_done(3);
    cluster_.run(hosts(), [&](std::uint32_t rank, const Session& session, const UniqueId& id) {
      rh_group_config config = small_config(3, rank);
      config.abort_on_refusal = 1;
      const Group group(session, id, config);
      good_round(group.get());
      all_done.arrive_and_wait();
      if (rank == 1) {
        EXPECT_NE(refuse(group.get()), RH_OK);
        return;
      }
      expect_told(rank, [&] { group.dispatch(SmallCall().args); }, RH_ABORTED, {"aborted by rank 1"});
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Hosts, RefusedGroup, refusal_hosts(), refusal_name);

}  // namespace
}  // namespace railhead::test
