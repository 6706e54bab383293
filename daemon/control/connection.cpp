#include "daemon/control/connection.hpp"

#include <cstdint>
#include <utility>

namespace railhead::daemon {
namespace {

// Of one message of a client; the largest that makes sense, a join with an expert map, has 256 KiB. Larger ones are not
// even received.
constexpr std::uint64_t kMostWords = (2U << 20) / sizeof(capnp::word);

capnp::ReaderOptions client_limits() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = kMostWords;
  return options;
}

}  // namespace

Connection::Connection(kj::Own<kj::AsyncIoStream> stream, schema::Daemon::Client bootstrap,
                       std::function<void(std::size_t)> flooded)
    : stream_(kj::mv(stream)),
      flooded_(std::move(flooded)),
      messages_(*this, kj::downcast<kj::AsyncCapabilityStream>(*stream_)),
      network_(messages_, ipc::kMaxFdsPerMessage, capnp::rpc::twoparty::Side::SERVER, client_limits()),
      rpc_(capnp::makeRpcServer(network_, kj::mv(bootstrap))) {}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> Connection::Messages::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd> fds, capnp::ReaderOptions options, kj::ArrayPtr<capnp::word> scratch) {
  const std::size_t waiting = connection_.network_.getCurrentQueueSize();
  if (waiting <= kMostWaiting) return inner_.tryReadMessage(fds, options, scratch);
  connection_.flooded_(waiting);
  return kj::NEVER_DONE;
}

}  // namespace railhead::daemon
