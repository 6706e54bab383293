// Railhead client library, C++ layer: owners for the C objects of railhead.h and exceptions for its statuses.
// Header only, C++17 or later. Shapes, units, threads and lifetimes are those of railhead.h.
#ifndef RAILHEAD_HPP_
#define RAILHEAD_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "railhead/railhead.h"

namespace railhead {

// Thrown by everything below; what() is the library's sentence.
class Error : public std::runtime_error {
 public:
  Error(rh_status status, const std::string& text)
      : std::runtime_error(std::string(rh_status_name(status)) + ": " + text), status_(status) {}
  [[nodiscard]] rh_status status() const noexcept { return status_; }

 private:
  rh_status status_;
};

inline void check(rh_status status) {
  if (status != RH_OK) throw Error(status, rh_last_error());
}

// A C struct with its size set and everything else zero.
template <class T>
T make() {
  T out{};
  out.size = sizeof(T);
  return out;
}

using UniqueId = rh_unique_id;

class Session {
 public:
  // daemon: see rh_session_config; empty = the environment's choice.
  explicit Session(const std::string& daemon = {}, const std::string& job = {}) {
    auto config = make<rh_session_config>();
    config.daemon = daemon.empty() ? nullptr : daemon.c_str();
    config.job = job.empty() ? nullptr : job.c_str();
    rh_session* raw = nullptr;
    check(rh_session_open(&config, &raw));
    session_.reset(raw);
  }

  [[nodiscard]] UniqueId unique_id() const {
    UniqueId id;
    check(rh_unique_id_create(session_.get(), &id));
    return id;
  }
  [[nodiscard]] rh_session* get() const noexcept { return session_.get(); }

 private:
  struct Close {
    void operator()(rh_session* s) const noexcept { rh_session_close(s); }
  };
  std::unique_ptr<rh_session, Close> session_;
};

// The routing of one dispatch; released on destruction.
class Handle {
 public:
  Handle() = default;
  explicit Handle(rh_handle* raw) : handle_(raw) {}
  [[nodiscard]] rh_handle* get() const noexcept { return handle_.get(); }
  void release() noexcept { handle_.reset(); }

 private:
  struct Release {
    void operator()(rh_handle* h) const noexcept { rh_handle_release(h); }
  };
  std::unique_ptr<rh_handle, Release> handle_;
};

// An operation in flight. Destruction waits for it, until the operation's deadline at most, so that its buffers may go;
// it must come before the group's.
class Event {
 public:
  Event() = default;
  explicit Event(rh_event* raw) : event_(raw) {}
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    if (this != &other) {
      drain();
      event_ = std::exchange(other.event_, nullptr);
    }
    return *this;
  }
  ~Event() { drain(); }

  void wait() {
    if (event_ != nullptr) check(rh_event_wait(std::exchange(event_, nullptr), UINT64_MAX));
  }
  // False when it is not complete by then.
  bool wait_for(std::chrono::milliseconds time) {
    if (event_ == nullptr) return true;
    const auto ms = time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
    return settle(rh_event_wait(event_, ms));
  }
  bool test() {
    if (event_ == nullptr) return true;
    return settle(rh_event_test(event_));
  }

 private:
  bool settle(rh_status status) {
    if (status == RH_IN_PROGRESS) return false;
    event_ = nullptr;
    check(status);
    return true;
  }
  void drain() noexcept {
    if (event_ != nullptr) rh_event_wait(std::exchange(event_, nullptr), UINT64_MAX);
  }

  rh_event* event_ = nullptr;
};

// Arena memory of a group; freed on destruction, which must come before the group's.
class Memory {
 public:
  Memory() = default;
  Memory(rh_group* group, rh_arena arena, std::size_t bytes) : group_(group), bytes_(bytes) {
    check(rh_alloc(group, arena, bytes, &data_));
  }
  Memory(Memory&& other) noexcept
      : group_(other.group_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      reset();
      group_ = other.group_;
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = other.bytes_;
    }
    return *this;
  }
  ~Memory() { reset(); }

  [[nodiscard]] void* data() const noexcept { return data_; }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void reset() noexcept {
    if (data_ != nullptr) rh_free(group_, std::exchange(data_, nullptr));
  }

  rh_group* group_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Group {
 public:
  // config.size need not be set. Collective over the ranks of the id.
  Group(const Session& session, const UniqueId& id, rh_group_config config) {
    config.size = sizeof(config);
    rh_group* raw = nullptr;
    check(rh_group_create(session.get(), &id, &config, &raw));
    group_.reset(raw);
  }

  [[nodiscard]] rh_group_info info() const {
    auto out = make<rh_group_info>();
    check(rh_group_query(group_.get(), &out));
    return out;
  }
  [[nodiscard]] Memory alloc(rh_arena arena, std::size_t bytes) const { return {group_.get(), arena, bytes}; }

  // Blocking. args.size need not be set. Throws when args.out is too small; the dispatch goes through all the same, for
  // the others and, with args.cached, for that handle: use plan and run where the number of rows is not known.
  std::pair<rh_dispatch_result, Handle> dispatch(rh_dispatch_args args) const {
    args.size = sizeof(args);
    auto result = make<rh_dispatch_result>();
    rh_handle* handle = nullptr;
    const rh_status status = rh_dispatch(group_.get(), &args, &result, &handle, nullptr);
    if (status == RH_LIMIT_EXCEEDED && args.cached != nullptr) {
      const Error refused(status, rh_last_error());  // before the next call leaves its own sentence
      rh_dispatch_run(group_.get(), args.cached, nullptr, 0, &result, nullptr);
      throw refused;
    }
    Handle owner(args.cached != nullptr ? nullptr : handle);
    check(status);
    return {result, std::move(owner)};
  }
  // result must outlive the event. When args.out is too small the event throws; run() finishes the dispatch.
  std::pair<Event, Handle> dispatch_async(rh_dispatch_args args, rh_dispatch_result& result) const {
    args.size = sizeof(args);
    result.size = sizeof(result);
    rh_handle* handle = nullptr;
    rh_event* event = nullptr;
    const rh_status status = rh_dispatch(group_.get(), &args, &result, &handle, &event);
    Handle owner(args.cached != nullptr ? nullptr : handle);
    check(status);
    return {Event(event), std::move(owner)};
  }
  // The rows to make room for, and the handle to run. No blocking call of this group may come between, and no younger
  // event may be waited for or destroyed before: it would wait for the run.
  std::pair<std::uint64_t, Handle> plan(rh_dispatch_args args) const {
    args.size = sizeof(args);
    std::uint64_t rows = 0;
    rh_handle* handle = nullptr;
    check(rh_dispatch_plan(group_.get(), &args, &rows, &handle));
    return {rows, Handle(handle)};
  }
  rh_dispatch_result run(const Handle& handle, void* out, std::size_t out_rows) const {
    auto result = make<rh_dispatch_result>();
    check(rh_dispatch_run(group_.get(), handle.get(), out, out_rows, &result, nullptr));
    return result;
  }

  void combine(rh_combine_args args) const {
    args.size = sizeof(args);
    check(rh_combine(group_.get(), &args, nullptr));
  }
  [[nodiscard]] Event combine_async(rh_combine_args args) const {
    args.size = sizeof(args);
    rh_event* event = nullptr;
    check(rh_combine(group_.get(), &args, &event));
    return Event(event);
  }

  // Newest first.
  [[nodiscard]] std::vector<rh_op_stats> stats() const {
    std::vector<rh_op_stats> out(64, make<rh_op_stats>());
    std::size_t count = out.size();
    check(rh_group_stats(group_.get(), out.data(), &count));
    out.resize(count);
    return out;
  }
  void abort(const std::string& reason) const { check(rh_group_abort(group_.get(), reason.c_str())); }
  [[nodiscard]] rh_status status() const noexcept { return rh_group_status(group_.get()); }
  [[nodiscard]] rh_group* get() const noexcept { return group_.get(); }

 private:
  struct Close {
    void operator()(rh_group* g) const noexcept { rh_group_close(g); }
  };
  std::unique_ptr<rh_group, Close> group_;
};

}  // namespace railhead

#endif  // RAILHEAD_HPP_
