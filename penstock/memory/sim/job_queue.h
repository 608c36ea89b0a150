// SPDX-License-Identifier: Apache-2.0
//
// JobQueue runs jobs on a few threads the way an unfriendly GPU would: ready jobs in random order,
// each starting late, its fence passing later still and out of step with the others. A job whose
// fences have not passed occupies no thread. Reproducible from the seed as far as the system's
// scheduling allows. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

#include "penstock/memory/device.h"

namespace penstock {

class JobQueue : public std::enable_shared_from_this<JobQueue> {
 public:
  struct Options {
    int threads = 2;
    std::uint64_t seed = 1;
    Nanoseconds max_delay{};
    bool hold = false;
  };

  /// `access` is what jobs get.
  static std::shared_ptr<JobQueue> start(const Options& options, std::unique_ptr<Access> access);

  Fence submit(std::vector<Device::Owner> uses, std::vector<Fence> after, Device::Job job);
  void hold(bool hold);
  /// Jobs whose fence has not passed.
  std::uint64_t pending() const;
  void wait_idle();
  /// True on one of this queue's threads, that is, inside a job.
  bool on_queue_thread() const;

  /// Runs everything that can run, held or not, fails with kCancelled what waits for a fence from
  /// elsewhere, and ends the threads. The last call on a queue.
  void stop();

 private:
  struct Task;
  using TaskPtr = std::shared_ptr<Task>;
  enum class Stage { kRun, kComplete };
  struct Step {
    TimePoint due;
    TaskPtr task;
    Stage stage;
  };
  using Lock = std::unique_lock<std::mutex>;

  JobQueue(const Options& options, std::unique_ptr<Access> access);

  void work();
  bool next_step(Lock& lock, Step& step);
  bool is_eligible(const Step& step) const { return step.stage == Stage::kComplete || !hold_; }
  void add_step(const TaskPtr& task, Stage stage);
  void dependency_passed(const TaskPtr& task);
  void run(const TaskPtr& task);
  void complete(const TaskPtr& task);
  void cancel_waiting();

  const std::unique_ptr<Access> access_;
  const Nanoseconds max_delay_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937_64 random_;
  bool hold_;
  bool stopping_ = false;
  std::vector<Step> steps_;              // What threads may take.
  std::unordered_set<TaskPtr> waiting_;  // Tasks with fences that have not passed.
  int busy_ = 0;                         // Threads inside a step.
  std::uint64_t pending_ = 0;
  std::uint64_t unfinished_ = 0;  // Like pending_, until the fence has passed.
  std::vector<std::thread> threads_;
};

}  // namespace penstock
