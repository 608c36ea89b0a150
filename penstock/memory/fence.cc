// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/fence.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace penstock {

struct Fence::State {
  std::mutex mutex;
  std::condition_variable passed;
  std::optional<Result<void>> outcome;  // Set once, then constant.
  std::vector<std::move_only_function<void()>> callbacks;
};

bool Fence::has_passed() const {
  if (!state_) return true;
  const std::lock_guard lock(state_->mutex);
  return state_->outcome.has_value();
}

Result<void> Fence::wait(Deadline deadline, Clock& clock) const {
  // Keeps the state while waiting, should another thread assign to this Fence.
  const std::shared_ptr<State> state = state_;
  if (!state) return {};
  std::unique_lock lock(state->mutex);
  const auto has_outcome = [&] { return state->outcome.has_value(); };
  if (!clock.wait_until(lock, state->passed, deadline.at(), has_outcome)) {
    return fail(ErrorKind::kDeadline, "the device work did not end before the deadline");
  }
  return *state->outcome;
}

void Fence::on_passed(std::move_only_function<void()> callback) const {
  if (state_) {
    const std::lock_guard lock(state_->mutex);
    if (!state_->outcome) {
      state_->callbacks.push_back(std::move(callback));
      return;
    }
  }
  callback();
}

FenceSource::FenceSource() : state_(std::make_shared<Fence::State>()) {}

FenceSource& FenceSource::operator=(FenceSource&& other) noexcept {
  // The old state goes to a temporary whose destructor passes the fence: a fence never hangs.
  FenceSource(std::move(other)).state_.swap(state_);
  return *this;
}

FenceSource::~FenceSource() {
  if (state_) signal(fail(ErrorKind::kCancelled, "the device work was given up before it ended"));
}

Fence FenceSource::fence() const { return Fence(state_); }

void FenceSource::signal(Result<void> outcome) {
  // A callback may drop the last reference to this source.
  const std::shared_ptr<Fence::State> state = state_;
  std::vector<std::move_only_function<void()>> callbacks;
  {
    const std::lock_guard lock(state->mutex);
    if (state->outcome) return;
    state->outcome = std::move(outcome);
    callbacks.swap(state->callbacks);
    state->passed.notify_all();
  }
  for (auto& callback : callbacks) callback();
}

}  // namespace penstock
