// One client connection: the RPC system and what it stands on. Control thread only.
#pragma once

#include <capnp/rpc-twoparty.h>
#include <capnp/serialize-async.h>
#include <kj/async-io.h>

#include <cstddef>
#include <functional>

#include "ipc/rpc.hpp"

namespace railhead::daemon {

class Connection {
 public:
  // `flooded` is called when a client asks on and on without reading the answers, with the bytes that wait for it. The
  // connection reads nothing more then, and is to be closed.
  Connection(kj::Own<kj::AsyncIoStream> stream, schema::Daemon::Client bootstrap,
             std::function<void(std::size_t waiting)> flooded);

  kj::Promise<void> on_disconnect() { return network_.onDisconnect(); }

  // The largest answer that makes sense to a client has 128 KiB; operators get larger ones, but ask one by one.
  static constexpr std::size_t kMostWaiting = std::size_t{2} << 20;

 private:
  // Looks before every message how much waits to be sent.
  class Messages final : public capnp::MessageStream {
   public:
    Messages(Connection& connection, kj::AsyncCapabilityStream& stream) : connection_(connection), inner_(stream) {}

    using MessageStream::tryReadMessage;
    using MessageStream::writeMessage;
    using MessageStream::writeMessages;
    kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(kj::ArrayPtr<kj::AutoCloseFd> fds,
                                                                      capnp::ReaderOptions options,
                                                                      kj::ArrayPtr<capnp::word> scratch) override;
    kj::Promise<void> writeMessage(kj::ArrayPtr<const int> fds,
                                   kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override {
      return inner_.writeMessage(fds, segments);
    }
    kj::Promise<void> writeMessages(
        kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override {
      return inner_.writeMessages(messages);
    }
    kj::Maybe<int> getSendBufferSize() override { return inner_.getSendBufferSize(); }
    kj::Promise<void> end() override { return inner_.end(); }

   private:
    Connection& connection_;
    capnp::AsyncCapabilityMessageStream inner_;
  };

  kj::Own<kj::AsyncIoStream> stream_;
  std::function<void(std::size_t)> flooded_;
  Messages messages_;
  capnp::TwoPartyVatNetwork network_;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> rpc_;
};

}  // namespace railhead::daemon
