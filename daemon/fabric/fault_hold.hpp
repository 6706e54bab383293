// Items that are held back: for a random number of polls, and overtaken by at most `reorder` later ones.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace railhead::fabric {

template <class T>
class FaultHold {
 public:
  FaultHold(std::uint64_t delay, std::uint64_t reorder) : delay_(delay), reorder_(reorder) {}

  // Whether it is held back at all.
  bool add(T item, std::uint64_t now, std::mt19937_64& random) {
    // Reordering needs company: an item waits up to as many polls as it may be overtaken by items.
    items_.push_back({std::move(item), now + random() % (delay_ + reorder_ + 1), 0});
    return items_.back().due > now;
  }

  // For an item that was taken and could not go: it is first again.
  void put_back(T item) { items_.push_front({std::move(item), 0, 0}); }

  // Where a ready item stands that may go next; nothing when none is ready.
  std::optional<std::size_t> pick(std::uint64_t now, std::mt19937_64& random) const {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].due <= now) ready.push_back(i);
      if (items_[i].overtaken >= reorder_) break;  // nothing may pass this one
    }
    if (ready.empty()) return std::nullopt;
    return ready[random() % ready.size()];
  }

  const T& at(std::size_t index) const { return items_[index].item; }

  T take(std::size_t index) {
    T item = std::move(items_[index].item);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(index));
    for (std::size_t i = 0; i < index; ++i) ++items_[i].overtaken;
    return item;
  }

  // Takes every item that matches, in order of arrival.
  template <class Match>
  std::vector<T> take_all(Match match) {
    std::vector<T> taken;
    std::erase_if(items_, [&](Held& held) {
      if (!match(held.item)) return false;
      taken.push_back(std::move(held.item));
      return true;
    });
    return taken;
  }

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }

 private:
  struct Held {
    T item;
    std::uint64_t due;        // poll number
    std::uint64_t overtaken;  // by how many later items
  };
  std::uint64_t delay_;
  std::uint64_t reorder_;
  std::deque<Held> items_;
};

}  // namespace railhead::fabric
