// What a C pointer of ours stands for. The pointer is a number that is never used twice and never dereferenced, so a
// handle used after its release, or made up, is found out instead of followed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace railhead::client {

template <class Tag, class T>
class Registry {
 public:
  // A name made before what it stands for begins, so that no lack of memory can lose it afterwards; taken out of use
  // again unless it is kept. None for a null object.
  class Pending {
   public:
    Pending(Registry& registry, std::shared_ptr<T> object)
        : registry_(registry), name_(object == nullptr ? nullptr : registry.add(std::move(object))) {}
    ~Pending() {
      if (name_ != nullptr) registry_.take(name_);
    }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;
    Tag* keep() noexcept { return std::exchange(name_, nullptr); }

   private:
    Registry& registry_;
    Tag* name_;
  };

  Tag* add(std::shared_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    // Aligned like a pointer, in the way no small integer is; the step leaves room between kinds of objects.
    auto* const name = reinterpret_cast<Tag*>(next_);  // NOLINT(performance-no-int-to-ptr): never dereferenced
    next_ += 64;
    objects_.emplace(name, std::move(object));
    return name;
  }

  // Null when the name is not in use.
  [[nodiscard]] std::shared_ptr<T> find(const Tag* name) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    return found == objects_.end() ? nullptr : found->second;
  }

  // Takes the name out of use; null when it was not in use.
  std::shared_ptr<T> take(const Tag* name) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(name);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  // Takes out every name whose object fulfils the condition.
  template <class F>
  void take_if(F&& condition) {
    const std::lock_guard lock(mutex_);
    std::erase_if(objects_, [&](const auto& entry) { return condition(*entry.second); });
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const Tag*, std::shared_ptr<T>> objects_;
  std::uintptr_t next_ = 0x10000;
};

}  // namespace railhead::client
