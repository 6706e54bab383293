#include "daemon/group/control_words.hpp"

#include <fcntl.h>

#include <cerrno>

namespace railhead::daemon {

Result<ipc::Segment> make_control_words(std::string_view name, std::uint64_t bytes) {
  auto words = ipc::Segment::create(name, bytes);
  if (words && ::fcntl(words->fd(), F_ADD_SEALS, F_SEAL_SEAL) != 0) {
    return fail(system_status("sealing control words", errno));
  }
  return words;
}

void take_back(ipc::Segment& words) {
  if (!words.valid()) return;
  // Cannot fail on memory with these seals; if it did, there would be nothing else to do.
  (void)::fallocate(words.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(words.bytes()));
  words = ipc::Segment();
}

}  // namespace railhead::daemon
