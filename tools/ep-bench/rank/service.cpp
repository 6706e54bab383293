#include "tools/ep-bench/rank/service.hpp"

#include <sys/socket.h>

namespace railhead::bench {
namespace {

bool send_answer(Answer& answer, const Status& status) {
  answer.code = static_cast<std::int32_t>(status.code());
  answer.say(status.message());
  return send(kChannelFd, &answer, sizeof(answer), MSG_NOSIGNAL) == ssize_t{sizeof(answer)};
}

}  // namespace

int serve_commands(const Performer& perform) {
  Answer ready{};
  if (!send_answer(ready, {})) return 1;
  for (Command command; recv(kChannelFd, &command, sizeof(command), 0) == ssize_t{sizeof(command)};) {
    Answer answer{};
    const Status status = perform(command, answer);
    if (!send_answer(answer, status)) return 1;
  }
  return 0;
}

int report_failure(const Status& status) {
  Answer answer{};
  send_answer(answer, status);
  return 1;
}

}  // namespace railhead::bench
