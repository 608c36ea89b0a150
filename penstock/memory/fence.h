// SPDX-License-Identifier: Apache-2.0
//
// A Fence is passed once, when the device work before it has ended, and carries that work's
// outcome. Copies share state. Waiting on a passed fence is free. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "penstock/base/clock.h"
#include "penstock/base/deadline.h"
#include "penstock/base/error.h"

namespace penstock {

class Fence {
 public:
  /// Already passed, successfully.
  Fence() = default;

  bool has_passed() const;
  /// The work's own error if it failed; kDeadline when `deadline` came first.
  Result<void> wait(Deadline deadline = Deadline::never(), Clock& clock = Clock::system()) const;
  /// Runs `callback` once: at once when passed, else on the thread that signals, which it must not
  /// hold up.
  void on_passed(std::move_only_function<void()> callback) const;

 private:
  friend class FenceSource;
  struct State;
  explicit Fence(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;  // null: passed
};

/// The producer's end. Destroying it unsignalled passes the fence with a kCancelled error.
class FenceSource {
 public:
  FenceSource();
  FenceSource(FenceSource&&) noexcept = default;
  FenceSource& operator=(FenceSource&& other) noexcept;
  ~FenceSource();
  Fence fence() const;
  /// The first outcome counts; later ones are ignored.
  void signal(Result<void> outcome = {});

 private:
  std::shared_ptr<Fence::State> state_;
};

}  // namespace penstock
