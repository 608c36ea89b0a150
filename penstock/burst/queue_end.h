// SPDX-License-Identifier: Apache-2.0
//
// What both ends of a message queue have: memory, lifeline, flag and clock.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/blocking.h"
#include "penstock/burst/lifeline.h"
#include "penstock/burst/queue_memory.h"

namespace penstock {

/// How an end is to be used; the shape is the creator's.
struct QueueUse {
  /// What ends its waits; null: its own, which only the queue itself cuts.
  std::shared_ptr<Lifeline> lifeline = nullptr;
  /// Outlives the end.
  const Clock* clock = &Clock::system();
  /// See kWaitSlice. Tests make it long, so that a lost wake-up shows.
  Nanoseconds slice = kWaitSlice;
};

class QueueEnd {
 public:
  QueueEnd(QueueMemory memory, QueueUse use)
      : memory_(std::make_unique<QueueMemory>(std::move(memory))),
        lifeline_(use.lifeline ? std::move(use.lifeline) : std::make_shared<Lifeline>()),
        clock_(use.clock),
        slice_(use.slice) {}

  const QueueMemory& memory() const { return *memory_; }
  const std::shared_ptr<Lifeline>& lifeline() const { return lifeline_; }

  WaitMeans means() const {
    return {.lifeline = lifeline_.get(), .flag = memory_->flag(), .clock = clock_, .slice = slice_};
  }

  /// See QueueMemory.
  Result<QueueDescriptor> describe() { return memory_->describe(); }
  Result<void> settle() { return memory_->settle(); }

  /// Calls something on the ring, unless its pages may go. A broken protocol cuts the lifeline, so
  /// that sibling queues' waits end too.
  template <typename Call>
  auto run(Call call) const -> decltype(call()) {
    if (memory_->is_unsettled()) return std::unexpected(QueueError::kUnsettled);
    auto result = call();
    if (!result && result.error() == QueueError::kCorrupt) {
      lifeline_->cut(Lifeline::Cause::kCorrupt);
    }
    return result;
  }

 private:
  std::unique_ptr<QueueMemory> memory_;
  std::shared_ptr<Lifeline> lifeline_;
  const Clock* clock_;
  Nanoseconds slice_;
};

}  // namespace penstock
