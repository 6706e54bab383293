// Membership of this process in one group, as one rank: builds what the operations need, checks the caller's arguments,
// starts operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/combine_op.hpp"
#include "client/dispatch_op.hpp"
#include "client/engine.hpp"
#include "client/group_context.hpp"
#include "client/handle.hpp"
#include "client/session.hpp"
#include "railhead/railhead.h"

namespace railhead::client {

class Group {
 public:
  static Result<std::shared_ptr<Group>> create(std::shared_ptr<Session> session, const rh_unique_id& id,
                                               const rh_group_config& config);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // What the caller of an operation does next.
  enum class Then : std::uint8_t {
    waits,      // for its end
    goes_on,    // with an event
    makes_room  // for the rows of a planned dispatch
  };
  // Checks the arguments and makes the operation; nothing has happened yet. Its handle is new, or the cached one.
  Result<std::shared_ptr<DispatchOp>> make_dispatch(const rh_dispatch_args& args, const std::shared_ptr<Handle>& cached,
                                                    Then then);
  Result<std::shared_ptr<Op>> make_combine(const rh_combine_args& args, std::shared_ptr<Handle> handle, Then then);
  // The call happens: everything that its caller needs afterwards was made before. An error, or an exception: it did
  // not (or the group has ended).
  Status start(const std::shared_ptr<Op>& op, Carried carried);
  // A call on this group that did not happen: notes it for `why`, ends the group where it was asked for. Returns what
  // to tell the caller.
  Status refuse(const Status& reason, std::uint64_t planned = 0);
  // The oldest dispatch of this handle that waits for its place, or invalid_usage.
  Result<std::shared_ptr<DispatchOp>> planned(const std::shared_ptr<Handle>& handle, Then then);
  // False when it does not wait for its place any more.
  Result<bool> run(const std::shared_ptr<DispatchOp>& op, void* out, std::uint64_t out_rows);
  void fill(const DispatchOp& op, rh_dispatch_result& result) const;
  void release(const std::shared_ptr<Handle>& handle);

  [[nodiscard]] GroupContext& context() { return *context_; }
  [[nodiscard]] Engine& engine() { return *engine_; }
  void abort(const std::string& reason);
  void describe(rh_group_info& info);
  // Ends this membership: not collective.
  void close();

 private:
  Group(std::shared_ptr<Session> session, std::uint32_t member) : session_(std::move(session)), member_(member) {}

  Result<void> set_up(const JoinResult& joined, const rh_group_config& config, const ipc::GroupParams& params);
  Result<void> map_words(AttachResult attached, std::uint32_t proxy);
  // Why no operation can be made now, one that uses `routing` again unless that is null.
  Status may_begin(const Handle* routing, Then then);
  // A blocking call would wait for itself.
  Status behind_planned(std::uint64_t planned);
  [[nodiscard]] Call called_now() const;

  std::shared_ptr<Session> session_;
  std::uint32_t member_;
  Milliseconds op_timeout_ = 0;
  Milliseconds join_timeout_ = 0;
  ipc::Segment rail_memory_;
  ipc::Segment rail_words_;
  ipc::Segment group_words_;
  std::unique_ptr<GroupContext> context_;
  std::unique_ptr<Engine> engine_;
  std::shared_ptr<SpareTables> spare_tables_ = std::make_shared<SpareTables>();
  bool closed_ = false;
};

}  // namespace railhead::client
