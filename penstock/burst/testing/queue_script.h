// SPDX-License-Identifier: Apache-2.0
//
// What the two processes of a queue test do: pass numbered items in random portions and in every
// way that the queue offers. Both check; neither needs the other's word for what item i is.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/burst/message_queue.h"

namespace penstock::testing {

/// As many bytes as a datum, and no power of two.
struct Item {
  std::uint64_t index = 0;
  std::uint64_t mixed = 0;
  std::uint64_t inverse = ~std::uint64_t{0};
  bool operator==(const Item&) const = default;
};

inline Item item_at(std::uint64_t index) {
  std::uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15U;
  mixed ^= mixed >> 31;
  return {.index = index, .mixed = mixed, .inverse = ~index};
}

inline bool is_an_item(const Item& item) { return item == item_at(item.index); }

inline Deadline soon() { return Deadline::after(Clock::system(), std::chrono::seconds(20)); }

// Portions are at most half of the ring: all-or-nothing ends that each wait for more than the other
// can give would wait for ever, however right the queue is.

/// Nobody looks around by himself: a wake-up that is lost shows.
inline QueueUse unsliced() { return {.slice = std::chrono::hours(1)}; }

/// Writes items 0 to `count` - 1. Empty, or what went wrong.
template <typename Writer>
std::string write_items(Writer& writer, std::uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uint64_t next = 0;
  while (next < count) {
    const std::size_t portion =
        std::min<std::uint64_t>(1 + random() % ((writer.capacity() + 1) / 2), count - next);
    std::vector<Item> items;
    for (std::size_t i = 0; i < portion; ++i) items.push_back(item_at(next + i));
    Result<void, QueueError> written;
    const Deadline deadline = soon();
    if (const auto way = random() % 3; way == 0 || !writer.event_flag()) {
      written =
          writer.write_blocking(items, deadline, {.poll_window = std::chrono::microseconds(20)});
    } else if (way == 1) {
      written = writer.write_blocking(items, deadline);
    } else {
      auto slots = writer.begin_write(portion);
      if (!slots && slots.error() == QueueError::kFull) continue;
      if (!slots) return str_format("begin_write: {}", to_string(slots.error()));
      for (std::size_t i = 0; i < portion; ++i) {
        if (!slots->set(i, items[i])) return "a slot is missing";
      }
      written = writer.commit_write(portion);
      writer.event_flag()->wake(EventFlag::kNotEmpty);
    }
    // A wait's last look comes with its deadline: who is late was not woken.
    if (deadline.passed(Clock::system())) return "a wake-up was lost";
    if (!written) return str_format("writing item {}: {}", next, to_string(written.error()));
    next += portion;
  }
  return {};
}

/// Reads `count` items and expects them to be 0 to `count` - 1.
template <typename Reader>
std::string read_items(Reader& reader, std::uint64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uint64_t next = 0;
  while (next < count) {
    const std::size_t portion =
        std::min<std::uint64_t>(1 + random() % ((reader.capacity() + 1) / 2), count - next);
    std::vector<Item> items(portion);
    Result<void, QueueError> got;
    const Deadline deadline = soon();
    if (random() % 3 != 0 || !reader.event_flag()) {
      got = reader.read_blocking(items, deadline);
    } else {
      auto slots = reader.begin_read(portion);
      if (!slots && slots.error() == QueueError::kEmpty) continue;
      if (!slots) return str_format("begin_read: {}", to_string(slots.error()));
      if (!slots->copy_to(items)) return "a slot is missing";
      got = reader.commit_read(portion);
      reader.event_flag()->wake(EventFlag::kNotFull);
    }
    if (deadline.passed(Clock::system())) return "a wake-up was lost";
    if (!got) return str_format("reading item {}: {}", next, to_string(got.error()));
    for (const Item& item : items) {
      if (item != item_at(next)) return str_format("item {} instead of {}", item.index, next);
      ++next;
    }
  }
  return {};
}

/// Follows an unsynchronised queue until item `last`: what is read is whole and in order; what was
/// lost was told of.
template <typename Reader>
std::string follow_items(Reader& reader, std::uint64_t last, unsigned seed) {
  std::mt19937 random(seed);
  std::uint64_t next = 0;
  bool may_skip = false;
  while (next <= last) {
    std::vector<Item> items(1 + random() % reader.capacity());
    const auto got = reader.read(items);
    if (!got && got.error() == QueueError::kOverflow) {
      may_skip = true;
      continue;
    }
    if (!got && got.error() == QueueError::kEmpty) {
      items.resize(1);
      const auto waited = reader.read_blocking(items, soon());
      if (!waited && waited.error() == QueueError::kOverflow) {
        may_skip = true;
        continue;
      }
      if (!waited) return str_format("waiting for item {}: {}", next, to_string(waited.error()));
    } else if (!got) {
      return str_format("reading: {}", to_string(got.error()));
    }
    for (const Item& item : items) {
      if (!is_an_item(item)) return str_format("a torn item after {}", next);
      if (item.index != next && !(may_skip && item.index > next)) {
        return str_format("item {} instead of {}", item.index, next);
      }
      may_skip = false;
      next = item.index + 1;
    }
  }
  return {};
}

using SyncQueue = MessageQueue<Item, QueueFlavor::kSynchronised>;
using UnsyncQueue = MessageQueue<Item, QueueFlavor::kUnsynchronised>;

}  // namespace penstock::testing
