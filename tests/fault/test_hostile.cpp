// Clients that break the protocol, on purpose or not: only their own connection or group ends.
#include <capnp/rpc-twoparty.h>
#include <fcntl.h>
#include <kj/async-io.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>

#include "client/daemon_link.hpp"
#include "ipc/layout/group_segment.hpp"
#include "ipc/layout/rail_words.hpp"
#include "ipc/layout/rings.hpp"
#include "ipc/liveness.hpp"
#include "ipc/pidfd.hpp"
#include "ipc/rpc.hpp"
#include "ipc/schema/control.capnp.h"
#include "ipc/version.hpp"
#include "tests/fault/hostile.hpp"

namespace railhead::test {
namespace {

using client::DaemonLink;
using ipc::Segment;
using ipc::SegmentKind;
using testing::HasSubstr;

// hello() with what a test wants to be wrong in it.
std::string hello(const std::string& socket, std::uint32_t version, int pidfd) {
  auto io = kj::setupAsyncIo();
  auto stream =
      io.provider->getNetwork().parseAddress(kj::str("unix:", socket)).wait(io.waitScope)->connect().wait(io.waitScope);
  capnp::TwoPartyClient rpc(kj::downcast<kj::AsyncCapabilityStream>(*stream), ipc::kMaxFdsPerMessage);
  auto request = rpc.bootstrap().castAs<schema::Daemon>().helloRequest();
  request.initClient().setVersion(version);
  if (pidfd >= 0) request.setPidfd(ipc::share(pidfd));
  try {
    auto response = request.send().wait(io.waitScope);
    auto checked = ipc::check(response.getError());
    return checked ? "ok" : checked.error().to_string();
  } catch (const kj::Exception& e) {
    return std::string("exception: ") + e.getDescription().cStr();
  }
}

TEST_F(Hostile, HelloIsChecked) {
  const auto own = ipc::open_own_pidfd();
  ASSERT_TRUE(own);
  EXPECT_EQ(hello(socket(), ipc::kProtocolVersion, own->get()), "ok");
  EXPECT_THAT(hello(socket(), ipc::kProtocolVersion + 7, own->get()), HasSubstr("version_mismatch"));
  EXPECT_THAT(hello(socket(), ipc::kProtocolVersion, -1), testing::Not(HasSubstr("ok")));
  const ipc::UniqueFd other(::eventfd(0, EFD_CLOEXEC));
  EXPECT_THAT(hello(socket(), ipc::kProtocolVersion, other.get()), testing::Not(testing::StrEq("ok")));
}

ipc::GroupParams small_group(std::uint32_t ranks) {
  ipc::GroupParams params;
  params.ranks = ranks;
  params.experts = 2 * ranks;
  params.hidden = 64;
  params.topk = 2;
  return params;
}

std::string hex_of(const std::vector<std::uint8_t>& bytes) {
  std::string hex;
  for (const std::uint8_t byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    hex += digits;
  }
  return hex;
}

ipc::UniqueFd memfd(std::uint64_t bytes, unsigned seals, bool fill) {
  ipc::UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  (void)!::ftruncate(fd.get(), static_cast<off_t>(bytes));
  if (fill) (void)!::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes));
  if (seals != 0) ::fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

TEST_F(Hostile, SegmentsWithWrongSealsSizesOrKindsAreRefused) {
  auto link = DaemonLink::connect({socket(), "hostile"});
  ASSERT_TRUE(link);
  auto id = (*link)->unique_id();
  auto joined = (*link)->join(*id, 0, small_group(1), 5000);
  ASSERT_TRUE(joined) << joined.error().message();
  ASSERT_TRUE((*link)->attach(joined->member, {}, 5000));
  constexpr std::uint64_t kBytes = 1 << 16;
  const auto offer = [&](SegmentKind kind, std::uint8_t number, std::uint64_t announced, int fd) {
    auto added = (*link)->add_segment(joined->member, {kind, number, announced, fd});
    return added ? std::string("ok") : added.error().message();
  };
  const auto unsealed = memfd(kBytes, 0, true);
  const auto sized = memfd(kBytes, ipc::size_seals(), true);
  const auto hollow = memfd(kBytes, ipc::size_seals(), false);
  const ipc::UniqueFd file(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(offer(SegmentKind::receive, 0, kBytes, unsealed.get()), HasSubstr("seals missing"));
  EXPECT_THAT(offer(SegmentKind::combine, 0, kBytes, sized.get()), HasSubstr("seals missing"));
  EXPECT_THAT(offer(SegmentKind::receive, 0, 2 * kBytes, sized.get()), HasSubstr("announced as"));
  EXPECT_THAT(offer(SegmentKind::receive, 0, kBytes, hollow.get()), HasSubstr("present"));
  EXPECT_THAT(offer(SegmentKind::receive, 0, kBytes, file.get()), HasSubstr("not a memfd"));
  EXPECT_THAT(offer(SegmentKind::receive, 200, kBytes, sized.get()), HasSubstr("not allowed"));
  EXPECT_THAT(offer(SegmentKind::rail, 0, kBytes, sized.get()), HasSubstr("not allowed"));
  EXPECT_THAT(offer(static_cast<SegmentKind>(77), 0, kBytes, sized.get()), HasSubstr("not allowed"));
  EXPECT_EQ(offer(SegmentKind::receive, 0, kBytes, sized.get()), "ok");
  EXPECT_THAT(offer(SegmentKind::receive, 0, kBytes, sized.get()), HasSubstr("taken"));
  EXPECT_FALSE((*link)->peer_segment(joined->member, 5, 0));
  EXPECT_FALSE((*link)->peer_segment(joined->member, 0, 9));
}

// A session of our own, whose capabilities are kept as long as the test likes.
struct BareSession {
  explicit BareSession(const std::string& socket)
      : stream(io.provider->getNetwork()
                   .parseAddress(kj::str("unix:", socket))
                   .wait(io.waitScope)
                   ->connect()
                   .wait(io.waitScope)),
        rpc(kj::downcast<kj::AsyncCapabilityStream>(*stream), ipc::kMaxFdsPerMessage) {
    auto request = rpc.bootstrap().castAs<schema::Daemon>().helloRequest();
    request.initClient().setVersion(ipc::kProtocolVersion);
    request.setPidfd(ipc::share(ipc::open_own_pidfd()->get()));
    auto response = request.send().wait(io.waitScope);
    auto fd = ipc::fetch(response.getWords()).wait(io.waitScope);
    words = std::move(*Segment::map(std::move(fd), ipc::page_bytes(), ipc::Access::read_write, ipc::Prefault::yes));
    life.emplace(std::move(*ipc::LivenessOwner::create(*reinterpret_cast<ipc::LivenessCell*>(words.data()))));
    session = response.getSession();
  }
  // The only rank of a group of its own, attached.
  schema::Member::Client join_alone() {
    auto id = session.uniqueIdRequest().send().wait(io.waitScope);
    auto request = session.joinRequest();
    request.setId(id.getId());
    ipc::fill(request.initParams(), small_group(1));
    request.setDeadlineMs(5000);
    auto member = request.send().wait(io.waitScope).getMember();
    auto attach = member.attachRequest();
    attach.setDeadlineMs(5000);
    attach.send().wait(io.waitScope);
    return member;
  }

  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Own<kj::AsyncIoStream> stream;
  capnp::TwoPartyClient rpc;
  Segment words;
  std::optional<ipc::LivenessOwner> life;
  schema::Session::Client session = nullptr;
};

TEST_F(Hostile, MemoryAskedForAgainAndAgainCostsTheDaemonNothing) {
  const std::size_t before = world_.host(0).fds();
  BareSession bare(socket());
  auto member = bare.join_alone();
  const auto memory = memfd(ipc::page_bytes(), ipc::size_seals(), true);
  auto add = member.addSegmentRequest();
  auto segment = add.initSegment();
  segment.setBytes(ipc::page_bytes());
  segment.setFile(ipc::share(memory.get()));
  add.send().wait(bare.io.waitScope);
  std::vector<schema::File::Client> kept;
  std::string refused;
  for (int i = 0; i < 1000 && refused.empty(); ++i) {
    auto response = member.peerSegmentRequest().send().wait(bare.io.waitScope);
    refused = response.getError().getMessage().cStr();
    if (refused.empty()) kept.push_back(response.getSegment().getFile());
  }
  EXPECT_THAT(refused, HasSubstr("256 are allowed"));
  EXPECT_LT(world_.host(0).fds(), before + 64);
  kept.clear();
  auto again = member.peerSegmentRequest().send().wait(bare.io.waitScope);
  EXPECT_EQ(again.getError().getCode(), 0);
}

TEST_F(Hostile, ParametersBeyondTheLimitsAreRefused) {
  auto link = DaemonLink::connect({socket(), "hostile"});
  ASSERT_TRUE(link);
  auto id = (*link)->unique_id();
  auto params = small_group(2);
  params.ranks = 0;
  EXPECT_FALSE((*link)->join(*id, 0, params, 100));
  params = small_group(2);
  params.hidden = UINT32_MAX;
  params.channels = UINT32_MAX;
  EXPECT_FALSE((*link)->join(*id, 0, params, 100));
  params = small_group(2);
  params.expert_rank.assign(params.experts, 99);
  EXPECT_FALSE((*link)->join(*id, 0, params, 100));
  params = small_group(2);
  params.max_handles = 1025;
  const auto handles = (*link)->join(*id, 0, params, 100);
  ASSERT_FALSE(handles);
  EXPECT_THAT(handles.error().message(), HasSubstr("limits.handles"));
  EXPECT_FALSE((*link)->join(*id, 2, small_group(2), 100));
  EXPECT_FALSE((*link)->join(std::vector<std::uint8_t>(100'000, 0xff), 0, small_group(2), 100));
}

// A rank that joins and then does nothing holds the others up to join_timeout_s, however long they would wait.
TEST(HostileJoin, ARankThatNeverAttachesIsNamedAtTheDaemonsLimit) {
  World world(2, {"--join_log_s", "1", "--join_timeout_s", "1"});
  auto link = DaemonLink::connect({world.host(0).socket(), "hostile"});
  ASSERT_TRUE(link);
  auto id = (*link)->unique_id();
  ASSERT_TRUE(id);
  world.add_rank(1);
  world.rank(0).send("join ranks=2 rank=1 join_ms=0 id=" + hex_of(*id));
  ASSERT_TRUE((*link)->join(*id, 0, small_group(2), 10'000));
  const Reply reply = world.rank(0).reply();
  EXPECT_EQ(reply.status, "timeout");
  EXPECT_THAT(reply.text, HasSubstr("rank 0 to attach its memory (join_timeout_s is 1)"));
}

// A rank on host 0 that is us, a decent one on host 1.
class HostileRank : public Hostile {
 protected:
  void SetUp() override {
    Hostile::SetUp();
    world_.add_rank(1);
    auto link = DaemonLink::connect({socket(), "hostile"});
    ASSERT_TRUE(link);
    link_ = std::move(*link);
    auto id = link_->unique_id();
    ASSERT_TRUE(id);
    world_.rank(2).send("join ranks=2 rank=1 id=" + hex_of(*id));
    auto joined = link_->join(*id, 0, small_group(2), 10'000);
    ASSERT_TRUE(joined) << joined.error().message();
    proxy_ = joined->proxy;
    ipc::GroupShape shape(small_group(2), joined->map);
    const ipc::RailSegmentLayout layout(shape, 0);
    auto rail = Segment::create("hostile-rail", layout.bytes());
    ASSERT_TRUE(rail);
    rail_ = std::move(*rail);
    auto attached = link_->attach(joined->member, {{SegmentKind::rail, 0, rail_.bytes(), rail_.fd()}}, 10'000);
    ASSERT_TRUE(attached) << attached.error().message();
    const auto map = [](ipc::UniqueFd fd, std::uint64_t bytes) {
      auto mapped = Segment::map(std::move(fd), bytes, ipc::Access::read_write, ipc::Prefault::yes);
      if (!mapped) throw std::runtime_error(mapped.error().message());
      return std::move(*mapped);
    };
    const auto whole = [](std::uint64_t bytes) {
      return (bytes + ipc::page_bytes() - 1) / ipc::page_bytes() * ipc::page_bytes();
    };
    words_ = map(std::move(attached->rail_words), whole(ipc::RailWordsLayout(shape, 0).bytes()));
    group_ = map(std::move(attached->group_words), whole(ipc::GroupSegmentLayout(shape, 0).bytes()));
    ASSERT_EQ(world_.rank(2).reply().status, "ok");
  }
  void TearDown() override {
    link_.reset();
    world_.rank(2).send("close");
    while (world_.rank(2).reply().status == "silent") continue;
    world_.forget_rank(2);
    // What it did on host 0 is checked by the base; its own rank there was this process.
    Hostile::TearDown();
  }
  void ring() {
    for (int i = 0; i < 3; ++i) link_->ring_bell(proxy_);
  }

  std::unique_ptr<DaemonLink> link_;
  std::uint32_t proxy_ = 0;
  Segment rail_;
  Segment words_;
  Segment group_;
};

void scribble(Segment& segment, std::mt19937_64& random) {
  auto* const words = reinterpret_cast<std::uint64_t*>(segment.data());
  for (std::uint64_t i = 0; i < segment.bytes() / 8; ++i) ipc::store_relaxed(words[i], std::uint64_t{random()});
}

TEST_F(HostileRank, GarbageInItsRailWordsEndsItsOwnGroupAtWorst) {
  std::mt19937_64 random(5);
  world_.rank(2).send("round");
  for (int i = 0; i < 50; ++i) {
    scribble(words_, random);
    ring();
  }
  link_.reset();  // it dies
  const Reply reply = world_.rank(2).reply();
  EXPECT_NE(reply.status, "ok");
  EXPECT_NE(reply.status, "silent") << reply.text;
}

TEST_F(HostileRank, GarbageOnTheBoardEndsItsOwnGroupAtWorst) {
  std::mt19937_64 random(6);
  world_.rank(2).send("round");
  for (int i = 0; i < 50; ++i) {
    scribble(group_, random);
    scribble(rail_, random);
    scribble(words_, random);
    ring();
    EXPECT_TRUE(world_.host(0).snapshot("why").is_object());
    EXPECT_TRUE(world_.host(0).snapshot("groups").is_object());
  }
  link_.reset();  // it dies
  const Reply reply = world_.rank(2).reply();
  EXPECT_NE(reply.status, "ok");
  EXPECT_NE(reply.status, "silent") << reply.text;
}

}  // namespace
}  // namespace railhead::test
