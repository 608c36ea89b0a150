// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnxruntime/run_limit.h"

#include <iterator>
#include <utility>

namespace penstock {

RunLimit::RunLimit(Clock& clock, Nanoseconds limit)
    : clock_(clock), limit_(limit), thread_([this] { work(); }) {}

RunLimit::~RunLimit() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

RunLimit::Watch RunLimit::watch(std::function<void()> stop) {
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    stop();
    passed_.push_back({.until = clock_.now(), .stop = std::move(stop), .passed = true});
    return Watch(*this, std::prev(passed_.end()));
  }
  const bool was_idle = waiting_.empty();
  waiting_.push_back({.until = clock_.now() + limit_, .stop = std::move(stop)});
  // Later ones end later, so that only the first changes what the thread waits for.
  if (was_idle) changed_.notify_all();
  return Watch(*this, std::prev(waiting_.end()));
}

void RunLimit::stop_all() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (Entry& entry : waiting_) {
    entry.stop();
    entry.passed = true;
  }
  passed_.splice(passed_.end(), waiting_);
  changed_.notify_all();
}

bool RunLimit::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void RunLimit::work() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const auto first = [this] {
      return waiting_.empty() ? TimePoint::max() : waiting_.front().until;
    };
    const TimePoint until = first();
    if (clock_.wait_until(lock, changed_, until, [&] { return ends_ || first() != until; })) {
      continue;
    }
    // With the lock, so that the Watch can't go meanwhile; what it calls only sets a flag.
    waiting_.front().stop();
    waiting_.front().passed = true;
    passed_.splice(passed_.end(), waiting_, waiting_.begin());
  }
}

void RunLimit::end(Entries::iterator entry) {
  const std::lock_guard lock(mutex_);
  const bool was_front = !waiting_.empty() && &waiting_.front() == &*entry;
  (entry->passed ? passed_ : waiting_).erase(entry);
  if (was_front) changed_.notify_all();
}

bool RunLimit::has_passed(Entries::const_iterator entry) const {
  const std::lock_guard lock(mutex_);
  return entry->passed;
}

}  // namespace penstock
