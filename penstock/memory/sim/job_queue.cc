// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/sim/job_queue.h"

#include <algorithm>
#include <utility>

#include "penstock/memory/device_checks.h"

namespace penstock {
namespace {

thread_local const JobQueue* current_queue = nullptr;

}  // namespace

struct JobQueue::Task {
  std::vector<Device::Owner> uses;
  std::vector<Fence> after;
  Device::Job job;
  FenceSource done;
  Result<void> outcome;
  std::size_t missing = 0;  // Fences not passed, plus one while submit() registers.
};

JobQueue::JobQueue(const Options& options, std::unique_ptr<Access> access)
    : access_(std::move(access)),
      max_delay_(options.max_delay),
      random_(options.seed),
      hold_(options.hold) {}

std::shared_ptr<JobQueue> JobQueue::start(const Options& options, std::unique_ptr<Access> access) {
  const std::shared_ptr<JobQueue> queue(new JobQueue(options, std::move(access)));
  for (int i = 0; i < std::max(options.threads, 1); ++i) {
    queue->threads_.emplace_back([queue] { queue->work(); });
  }
  return queue;
}

Fence JobQueue::submit(std::vector<Device::Owner> uses, std::vector<Fence> after, Device::Job job) {
  const TaskPtr task = std::make_shared<Task>();
  task->uses = std::move(uses);
  task->after = std::move(after);
  task->job = std::move(job);
  task->missing = task->after.size() + 1;
  Fence done = task->done.fence();
  // The task may run, and clear its own list, as soon as its last fence has passed.
  const std::vector<Fence> fences = task->after;
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
    ++unfinished_;
    waiting_.insert(task);
  }
  for (const Fence& fence : fences) {
    // Weak: a fence that never passes must not keep the queue or the task's owners.
    fence.on_passed([weak_queue = weak_from_this(), weak_task = std::weak_ptr(task)] {
      const auto queue = weak_queue.lock();
      const auto waiting = weak_task.lock();
      if (queue && waiting) queue->dependency_passed(waiting);
    });
  }
  dependency_passed(task);
  return done;
}

void JobQueue::dependency_passed(const TaskPtr& task) {
  const std::lock_guard lock(mutex_);
  if (--task->missing > 0) return;
  // Not there any more: stop() has cancelled it.
  if (waiting_.erase(task) > 0) add_step(task, Stage::kRun);
}

void JobQueue::add_step(const TaskPtr& task, Stage stage) {
  std::uniform_int_distribution<Nanoseconds::rep> delay(0, max_delay_.count());
  steps_.push_back({Clock::system().now() + Nanoseconds(delay(random_)), task, stage});
  changed_.notify_all();
}

void JobQueue::hold(bool hold) {
  const std::lock_guard lock(mutex_);
  hold_ = hold && !stopping_;
  changed_.notify_all();
}

std::uint64_t JobQueue::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void JobQueue::wait_idle() {
  Lock lock(mutex_);
  changed_.wait(lock, [this] { return unfinished_ == 0; });
}

bool JobQueue::on_queue_thread() const { return current_queue == this; }

void JobQueue::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    hold_ = false;
    changed_.notify_all();
  }
  // When a job's owners held the last reference to the device, this is one of our own threads, and
  // the others may wait for the fence of the very job that it is completing. Each thread holds the
  // queue and ends on its own.
  const bool is_own_thread = on_queue_thread();
  for (std::thread& thread : threads_) {
    if (is_own_thread) {
      thread.detach();
    } else {
      thread.join();
    }
  }
  threads_.clear();
}

void JobQueue::work() {
  current_queue = this;
  Lock lock(mutex_);
  Step step;
  while (next_step(lock, step)) {
    ++busy_;
    lock.unlock();
    if (step.stage == Stage::kRun) {
      run(step.task);
    } else {
      complete(step.task);
    }
    step.task.reset();
    lock.lock();
    --busy_;
    changed_.notify_all();
  }
  changed_.notify_all();
}

bool JobQueue::next_step(Lock& lock, Step& step) {
  while (true) {
    const TimePoint now = Clock::system().now();
    TimePoint earliest = TimePoint::max();
    std::vector<std::size_t> due;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (!is_eligible(steps_[i])) continue;
      if (stopping_ || steps_[i].due <= now) {
        due.push_back(i);
      } else {
        earliest = std::min(earliest, steps_[i].due);
      }
    }
    if (!due.empty()) {
      std::uniform_int_distribution<std::size_t> any(0, due.size() - 1);
      std::swap(steps_[due[any(random_)]], steps_.back());
      step = std::move(steps_.back());
      steps_.pop_back();
      return true;
    }
    if (earliest != TimePoint::max()) {
      changed_.wait_until(lock, earliest);
    } else if (stopping_ && busy_ == 0) {
      // Nothing runs that could pass the remaining fences.
      if (waiting_.empty()) return false;
      cancel_waiting();
    } else {
      changed_.wait(lock);
    }
  }
}

void JobQueue::cancel_waiting() {
  const std::vector<TaskPtr> cancelled(waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (const TaskPtr& task : cancelled) {
    task->outcome = fail(ErrorKind::kCancelled,
                         "the device was closed before the fences that its work waits for passed");
    add_step(task, Stage::kComplete);
  }
}

void JobQueue::run(const TaskPtr& task) {
  task->outcome = outcome_of(task->after);
  if (task->outcome) task->outcome = run_job(task->job, *access_);
  const std::lock_guard lock(mutex_);
  add_step(task, Stage::kComplete);
}

void JobQueue::complete(const TaskPtr& task) {
  // The owners go just before the fence passes: whoever waited for it can count on their memory
  // being back in the pool.
  task->job = nullptr;
  task->uses.clear();
  task->after.clear();
  {
    const std::lock_guard lock(mutex_);
    --pending_;
  }
  task->done.signal(std::move(task->outcome));
  const std::lock_guard lock(mutex_);
  --unfinished_;
}

}  // namespace penstock
