#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "child.hpp"
#include "ipc/segment.hpp"

namespace railhead::ipc {
namespace {

using test::Child;
using ::testing::HasSubstr;

Segment make(std::size_t bytes, SegmentOptions options = {}) {
  auto segment = Segment::create("test", bytes, options);
  EXPECT_TRUE(segment) << segment.error().to_string();
  return std::move(segment).value_or(Segment());
}

UniqueFd fd_of(const Segment& segment) {
  return UniqueFd(::fcntl(segment.fd(), F_DUPFD_CLOEXEC, 0));
}

unsigned seals_of(int fd) {
  return static_cast<unsigned>(::fcntl(fd, F_GET_SEALS));
}

// A memfd as a client could make it without our help.
UniqueFd raw_memfd(std::size_t bytes, unsigned seals, bool filled) {
  UniqueFd fd(::memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  if (filled) {
    EXPECT_EQ(::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)), 0);
  }
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

std::string refusal(int fd, std::size_t bytes, unsigned seals) {
  const auto result = Segment::verify(fd, bytes, seals);
  if (result) return "accepted";
  EXPECT_EQ(result.error().code(), Code::protocol);
  return result.error().message();
}

TEST(Segment, IsZeroedRoundedAndWholePagesArePresent) {
  const Segment segment = make(page_bytes() + 1);
  ASSERT_EQ(segment.bytes(), 2 * page_bytes());
  EXPECT_TRUE(std::all_of(segment.span().begin(), segment.span().end(), [](std::byte b) { return b == std::byte{0}; }));
  std::vector<unsigned char> present(2);
  ASSERT_EQ(::mincore(segment.data(), segment.bytes(), present.data()), 0);
  EXPECT_EQ(present[0] & present[1] & 1, 1);
}

TEST(Segment, SpansSeveralPopulateSteps) {
  const Segment segment = make((64ULL << 20) + page_bytes());
  struct stat info {};
  ASSERT_EQ(::fstat(segment.fd(), &info), 0);
  EXPECT_EQ(static_cast<std::size_t>(info.st_blocks) * 512, segment.bytes());
}

TEST(Segment, HugePageAdviceGivesWorkingMemory) {
  const Segment segment = make(4ULL << 20, {.huge_pages = true});
  EXPECT_TRUE(Segment::verify(segment.fd(), segment.bytes(), size_seals()));
}

TEST(Segment, SizeIsSealedFromBirth) {
  const Segment segment = make(page_bytes());
  EXPECT_EQ(seals_of(segment.fd()), size_seals());
  EXPECT_EQ(::ftruncate(segment.fd(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(segment.fd(), static_cast<off_t>(2 * page_bytes())), -1);
  EXPECT_EQ(errno, EPERM);
}

TEST(Segment, TooMuchMemoryIsAnErrorWithNeededAndFree) {
  const auto segment = Segment::create("arena", 1ULL << 50);
  ASSERT_FALSE(segment);
  EXPECT_EQ(segment.error().code(), Code::out_of_memory);
  EXPECT_THAT(segment.error().message(), HasSubstr("segment 'arena' needs 1125899906842624 bytes, free "));
}

// The kernel would end the process. In a child: the limit holds for whatever else the tests write.
TEST(Segment, TheLimitOfFileSizesIsAnError) {
  Child child([] {
    const rlimit limit{1 << 20, 1 << 20};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (!Segment::create("small", 1 << 20)) return 2;
    const auto large = Segment::create("large", (1 << 20) + 1);
    if (large || large.error().code() != Code::limit_exceeded) return 3;
    return large.error().message().find("1048576 (RLIMIT_FSIZE)") == std::string::npos ? 4 : 0;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(Segment, ZeroAndAbsurdSizesAreInvalid) {
  EXPECT_EQ(Segment::create("none", 0).error().code(), Code::invalid_argument);
  EXPECT_EQ(Segment::create("absurd", ~std::size_t{0}).error().code(), Code::invalid_argument);
}

TEST(Segment, FailureLeavesNoDescriptorBehind) {
  UniqueFd before(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int next = before.get();
  before.reset();
  EXPECT_FALSE(Segment::create("arena", 1ULL << 50));
  EXPECT_FALSE(Segment::create(std::string(300, 'n'), page_bytes()));  // memfd_create refuses the name
  EXPECT_EQ(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(), next);
}

TEST(Segment, BothSidesSeeTheSameMemory) {
  const Segment owner = make(page_bytes());
  auto peer = Segment::map(fd_of(owner), owner.bytes(), Access::read_write, Prefault::yes);
  ASSERT_TRUE(peer) << peer.error().to_string();
  peer->drop_fd();
  EXPECT_EQ(peer->fd(), -1);
  owner.data()[7] = std::byte{42};
  EXPECT_EQ(peer->data()[7], std::byte{42});
  peer->data()[8] = std::byte{43};
  EXPECT_EQ(owner.data()[8], std::byte{43});
}

TEST(Segment, MoveLeavesOneMapping) {
  Segment first = make(page_bytes());
  std::byte* const data = first.data();
  Segment second(std::move(first));
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a move leaves is promised
  EXPECT_EQ(second.data(), data);
  second = make(page_bytes());
  unsigned char present = 0;
  EXPECT_EQ(::mincore(data, page_bytes(), &present), -1);  // the old mapping is gone
}

TEST(Segment, ReadOnlyMappingCannotBeWritten) {
  const Segment owner = make(page_bytes());
  auto peer = Segment::map(fd_of(owner), owner.bytes(), Access::read_only, Prefault::yes);
  ASSERT_TRUE(peer);
  Child child([&] {
    ::signal(SIGSEGV, SIG_DFL);
    *static_cast<volatile std::byte*>(peer->data()) = std::byte{1};
    return 0;
  });
  EXPECT_EQ(child.wait(), 1000 + SIGSEGV);
  EXPECT_EQ(owner.data()[0], std::byte{0});
}

TEST(Segment, FrozenMemoryRefusesEveryNewWayToWrite) {
  Segment owner = make(2 * page_bytes());
  const auto daemon = Segment::map(fd_of(owner), owner.bytes(), Access::read_write, Prefault::yes);
  ASSERT_TRUE(daemon);
  ASSERT_TRUE(owner.freeze_writers());
  EXPECT_EQ(seals_of(owner.fd()), frozen_seals());
  ASSERT_TRUE(owner.freeze_writers()) << "idempotent";

  EXPECT_FALSE(Segment::map(fd_of(owner), owner.bytes(), Access::read_write, Prefault::no));
  auto reader = Segment::map(fd_of(owner), owner.bytes(), Access::read_only, Prefault::yes);
  ASSERT_TRUE(reader) << reader.error().to_string();
  EXPECT_EQ(::mprotect(reader->data(), reader->bytes(), PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(::pwrite(owner.fd(), "x", 1, 0), -1);
  EXPECT_EQ(::fallocate(owner.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(page_bytes())),
            -1);
  EXPECT_EQ(::madvise(owner.data(), page_bytes(), MADV_REMOVE), -1);
  EXPECT_EQ(::fcntl(owner.fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);

  const std::string path = "/proc/self/fd/" + std::to_string(owner.fd());
  const UniqueFd again(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (again) {
    EXPECT_EQ(::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  }

  owner.data()[0] = std::byte{5};  // the writers that were there go on
  daemon->data()[1] = std::byte{6};
  EXPECT_EQ(reader->data()[0], std::byte{5});
  EXPECT_EQ(reader->data()[1], std::byte{6});
}

TEST(Segment, FreezeWithoutTheDescriptorIsAnError) {
  Segment owner = make(page_bytes());
  owner.drop_fd();
  EXPECT_FALSE(owner.freeze_writers());
}

TEST(SegmentVerify, AcceptsOurOwn) {
  Segment segment = make(page_bytes());
  EXPECT_EQ(refusal(segment.fd(), segment.bytes(), size_seals()), "accepted");
  ASSERT_TRUE(segment.freeze_writers());
  EXPECT_EQ(refusal(segment.fd(), segment.bytes(), frozen_seals()), "accepted");
}

TEST(SegmentVerify, RefusesSizeLies) {
  const Segment segment = make(page_bytes());
  EXPECT_THAT(refusal(segment.fd(), 2 * page_bytes(), size_seals()), HasSubstr("announced as"));
  EXPECT_THAT(refusal(segment.fd(), page_bytes() - 1, size_seals()), HasSubstr("not whole pages"));
  EXPECT_THAT(refusal(segment.fd(), 0, size_seals()), HasSubstr("not whole pages"));
  EXPECT_FALSE(Segment::map(fd_of(segment), 2 * page_bytes(), Access::read_only, Prefault::no));
}

TEST(SegmentVerify, NamesMissingSeals) {
  const Segment segment = make(page_bytes());
  EXPECT_THAT(refusal(segment.fd(), page_bytes(), frozen_seals()), HasSubstr("missing: SEAL|FUTURE_WRITE"));
  const UniqueFd shrinkable = raw_memfd(page_bytes(), F_SEAL_GROW, true);
  EXPECT_THAT(refusal(shrinkable.get(), page_bytes(), size_seals()), HasSubstr("missing: SHRINK"));
}

TEST(SegmentVerify, RefusesAbsentPages) {
  const UniqueFd sparse = raw_memfd(2 * page_bytes(), size_seals(), false);
  EXPECT_THAT(refusal(sparse.get(), 2 * page_bytes(), size_seals()), HasSubstr("only 0 of its"));
}

TEST(SegmentVerify, RefusesWhatIsNoMemfd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EXPECT_THAT(refusal(reader.get(), page_bytes(), size_seals()), HasSubstr("not a memfd"));
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(refusal(file.get(), page_bytes(), size_seals()), HasSubstr("not a memfd"));
  EXPECT_THAT(refusal(-1, page_bytes(), size_seals()), HasSubstr("Bad file descriptor"));
}

TEST(SegmentVerify, RefusesFilesOnTmpfs) {
  std::string path = "/dev/shm/railhead-test-XXXXXX";
  const UniqueFd file(::mkstemp(path.data()));
  if (!file) GTEST_SKIP() << "no writable /dev/shm here";
  ::unlink(path.c_str());
  ASSERT_EQ(::fallocate(file.get(), 0, 0, static_cast<off_t>(page_bytes())), 0);
  EXPECT_THAT(refusal(file.get(), page_bytes(), size_seals()), HasSubstr("seals missing"));
}

}  // namespace
}  // namespace railhead::ipc
