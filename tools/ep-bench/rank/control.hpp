// What the launcher and its rank processes share: a barrier, the unique id of a group, and the figures of each round.
// Made by the launcher, handed to every rank by descriptor. Commands and answers go over a socket per rank instead, so
// that a rank without work sleeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ipc/segment.hpp"
#include "ipc/wait.hpp"
#include "railhead/railhead.h"

namespace railhead::bench {

// Descriptors of a rank process.
inline constexpr int kControlFd = 3;
inline constexpr int kChannelFd = 4;

inline constexpr std::uint32_t kLoopBatch = 100;  // rounds

enum class Verb : std::uint32_t {
  open_group,   // make group `slot`; its first rank makes the id
  close_group,  // of `slot`
  rounds,       // `count` rounds from `first`, a barrier before each
  loop,         // `count` batches of kLoopBatch rounds without barriers (in the row `wire`: that many slots)
  await_loss,   // call dispatch and report when it ended with an error
};

struct Command {
  Verb verb;
  std::uint32_t slot;
  std::uint64_t first;
  std::uint32_t count;
  std::uint32_t verify;  // 1: check everything that arrives
};

struct Answer {
  std::int32_t code;  // railhead::Code
  std::uint32_t reserved;
  std::int64_t elapsed_ns;  // open_group: from the barrier; loop: of the median batch (`wire`: of all slots)
  std::int64_t at_ns;       // await_loss: steady clock when the error was there
  char text[1000];          // the sentence of a failure, else empty; ends with 0

  void say(std::string_view sentence);
};

// One rank's figures of one round, nanoseconds.
struct RoundSample {
  std::uint64_t dispatch_ns, combine_ns, total_ns;
  std::uint64_t dispatch_wait_ns, combine_wait_ns;          // as the library counts: until every rank had called,
  std::uint64_t dispatch_transfer_ns, combine_transfer_ns;  // and from then on; all operations of the round
  std::uint64_t rows;                                       // received
  std::uint64_t received_bytes, rail_bytes;
  std::int32_t last_rank_dispatch, last_rank_combine;
};

inline constexpr std::uint32_t kRoundsPerCommand = 1024;

// One mapping of the shared memory. Movable; figures are indexed by rank and by round inside the command.
class Control {
 public:
  // The launcher's side. Errors as Segment::create.
  static Result<Control> make(std::uint32_t ranks);
  // A rank's side, from kControlFd.
  static Result<Control> join(std::uint32_t ranks);

  [[nodiscard]] int fd() const noexcept { return memory_.fd(); }

  // Returns when every rank is here. timeout; aborted when the launcher called give_up().
  Status barrier(ipc::Deadline deadline);
  // Ends every barrier, now and later.
  void give_up();

  [[nodiscard]] rh_unique_id& id();
  [[nodiscard]] RoundSample& sample(std::uint32_t rank, std::uint32_t round);
  // A count for the launcher: rounds of this command that rank 0 has finished, or ranks that are about to wait.
  void set_progress(std::uint32_t rounds);
  void add_progress();
  [[nodiscard]] std::uint32_t progress() const;

 private:
  struct Words;
  Control(ipc::Segment memory, std::uint32_t ranks) : memory_(std::move(memory)), ranks_(ranks) {}
  [[nodiscard]] Words& words() const;

  ipc::Segment memory_;
  std::uint32_t ranks_;
};

}  // namespace railhead::bench
