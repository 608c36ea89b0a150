// SPDX-License-Identifier: Apache-2.0
#include "gst/output_slots.h"

namespace penstock::gst {

OutputSlots::Lease OutputSlots::acquire(const std::function<void()>& on_late) {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return interrupted_ || held_ < kSlots; };
  if (!clock_.wait_until(lock, changed_, clock_.now() + kPatience, is_over)) {
    lock.unlock();
    on_late();
    lock.lock();
    clock_.wait_until(lock, changed_, TimePoint::max(), is_over);
  }
  if (interrupted_) return nullptr;
  ++held_;
  return Lease(this, [slots = shared_from_this()](const void*) { slots->give_back(); });
}

bool OutputSlots::await(const Fence& fence) {
  const auto has_passed = std::make_shared<bool>(false);  // Under the lock.
  fence.on_passed([slots = shared_from_this(), has_passed] {
    const std::lock_guard lock(slots->mutex_);
    *has_passed = true;
    slots->changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  clock_.wait_until(lock, changed_, TimePoint::max(), [&] { return interrupted_ || *has_passed; });
  return *has_passed;
}

void OutputSlots::give_back() {
  const std::lock_guard lock(mutex_);
  --held_;
  changed_.notify_all();
}

void OutputSlots::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

void OutputSlots::resume() {
  const std::lock_guard lock(mutex_);
  interrupted_ = ended_;
}

void OutputSlots::end() {
  const std::lock_guard lock(mutex_);
  interrupted_ = ended_ = true;
  changed_.notify_all();
}

std::size_t OutputSlots::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace penstock::gst
