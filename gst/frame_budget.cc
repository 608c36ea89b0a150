// SPDX-License-Identifier: Apache-2.0
#include "gst/frame_budget.h"

#include <algorithm>

namespace penstock::gst {

FrameBudget::Lease FrameBudget::acquire(std::size_t frames) {
  std::unique_lock lock(mutex_);
  held_ += frames;
  most_held_ = std::max(most_held_, held_);
  changed_.wait(lock, [this] { return interrupted_ || held_ <= limit_; });
  if (interrupted_) {
    held_ -= frames;
    return nullptr;
  }
  return Lease(this,
               [budget = shared_from_this(), frames](const void*) { budget->give_back(frames); });
}

void FrameBudget::give_back(std::size_t frames) {
  const std::lock_guard lock(mutex_);
  held_ -= frames;
  changed_.notify_all();
}

void FrameBudget::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void FrameBudget::resume() {
  const std::lock_guard lock(mutex_);
  interrupted_ = false;
}

std::size_t FrameBudget::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

std::size_t FrameBudget::most_held() const {
  const std::lock_guard lock(mutex_);
  return most_held_;
}

}  // namespace penstock::gst
