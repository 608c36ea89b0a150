// SPDX-License-Identifier: Apache-2.0
//
// For comparing the executor with a reference scheduler of the plainest kind over random steps,
// with the clock in the caller's hand: a test takes some of them, `./dev soak schedule` a million.
//
//   RandomSteps steps(seed, batch_size);
//   for (int i = 0; i < 10'000; ++i) steps.step();
//   steps.finish();
//   if (!steps.difference().empty()) ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "penstock/exec/batch_executor.h"
#include "penstock/exec/test_runner.h"

namespace penstock::testing {

inline constexpr std::size_t kScheduleDepth = 10;
inline constexpr std::size_t kScheduleShare = 3;
inline constexpr Nanoseconds kScheduleMaxWait{500};

/// One list of all waiting requests in order of arrival. Whose turn it is follows from the number
/// that a source drew when it last had to line up: the lowest numbers go first.
class ReferenceScheduler {
 public:
  explicit ReferenceScheduler(std::size_t batch_size) : batch_size_(batch_size) {}

  struct Waiting {
    std::string source;
    Generation generation;
    int number;
    TimePoint at;
    int patience = 0;  // As its source's first: batches within which it must run; 0: not first.
  };

  std::optional<ErrorKind> submit(const std::string& source, Generation generation, int number,
                                  TimePoint now) {
    if (cancelled_.contains(source) && generation <= cancelled_[source]) {
      return ErrorKind::kCancelled;
    }
    if (list_.size() == kScheduleDepth || count(source) == kScheduleShare)
      return ErrorKind::kExhausted;
    known_[source] = true;
    if (count(source) == 0) turn_[source] = ++last_turn_;
    list_.push_back({source, generation, number, now});
    note_firsts();
    return {};
  }

  bool is_due(TimePoint now) const {
    const auto heads = firsts();
    if (heads.empty()) return false;
    if (heads.size() >= batch_size_ || list_.size() == kScheduleDepth) return true;
    return std::ranges::any_of(
        heads, [&](std::size_t i) { return now - list_[i].at >= kScheduleMaxWait; });
  }

  std::vector<Waiting> take() {
    std::vector<std::size_t> heads = firsts();
    std::ranges::sort(heads, {}, [&](std::size_t i) { return turn_[list_[i].source]; });
    if (heads.size() > batch_size_) heads.resize(batch_size_);
    std::vector<Waiting> batch;
    for (const std::size_t i : heads) batch.push_back(list_[i]);
    for (const Waiting& taken : batch) {
      std::erase_if(list_, [&](const Waiting& w) { return w.number == taken.number; });
      if (count(taken.source) > 0) turn_[taken.source] = ++last_turn_;
      ++running_[taken.source];
    }
    // Contract B04, on the reference itself: who was passed over is still within its bound.
    for (Waiting& waiting : list_) {
      if (waiting.patience > 0 && --waiting.patience == 0) kept_its_bound_ = false;
    }
    note_firsts();
    return batch;
  }

  void finish(const std::string& source) {
    --running_[source];
    forget_if_idle(source);
  }

  std::vector<int> cancel(const std::string& source, Generation generation) {
    known_[source] = true;
    cancelled_[source] =
        cancelled_.contains(source) ? std::max(cancelled_[source], generation) : generation;
    std::vector<int> dropped;
    for (const Waiting& w : list_) {
      if (w.source == source && w.generation <= generation) dropped.push_back(w.number);
    }
    std::erase_if(
        list_, [&](const Waiting& w) { return w.source == source && w.generation <= generation; });
    note_firsts();
    return dropped;
  }

  void retire(const std::string& source) {
    if (!known_.contains(source)) return;
    known_[source] = false;
    cancelled_.erase(source);
    forget_if_idle(source);
  }

  std::size_t waiting() const { return list_.size(); }
  std::size_t sources() const { return known_.size(); }
  bool kept_its_bound() const { return kept_its_bound_; }

  static constexpr int kSources = 6;

 private:
  std::size_t count(const std::string& source) const {
    return static_cast<std::size_t>(
        std::ranges::count(list_, source, [](const Waiting& w) { return w.source; }));
  }
  /// Index of each source's first request.
  std::vector<std::size_t> firsts() const {
    std::vector<std::size_t> heads;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const auto same = [&](std::size_t j) { return list_[j].source == list_[i].source; };
      if (std::ranges::none_of(heads, same)) heads.push_back(i);
    }
    return heads;
  }
  void note_firsts() {
    const auto heads = firsts();
    for (const std::size_t i : heads) {
      if (list_[i].patience > 0) continue;
      list_[i].patience = static_cast<int>((heads.size() + batch_size_ - 1) / batch_size_);
    }
  }
  void forget_if_idle(const std::string& source) {
    const auto found = known_.find(source);
    if (found != known_.end() && !found->second && running_[source] == 0 && count(source) == 0) {
      known_.erase(found);
    }
  }

  const std::size_t batch_size_;
  std::vector<Waiting> list_;
  std::map<std::string, int> turn_;
  std::map<std::string, Generation> cancelled_;
  std::map<std::string, int> running_;
  std::map<std::string, bool> known_;  // False: retired.
  int last_turn_ = 0;
  bool kept_its_bound_ = true;
};

/// Takes the same random steps with an executor, whose clock stands still, and with the reference.
class RandomSteps {
 public:
  RandomSteps(std::uint64_t seed, int batch_size)
      : random_(seed), reference_(static_cast<std::size_t>(batch_size)) {
    log_.during_run = [this] { meddle(); };
    auto made = SharedBatchExecutor::create({.queue_depth = kScheduleDepth,
                                             .source_share = kScheduleShare,
                                             .batch_size = batch_size,
                                             .max_wait = kScheduleMaxWait,
                                             .clock = &clock_,
                                             .manual = true},
                                            logging_runners(log_));
    executor_ = std::move(made.value());
  }

  /// Goes no further once the two differ.
  void step() {
    if (!difference_.empty()) return;
    switch (random(8)) {
      case 0:
      case 1:
      case 2:
      case 3:
        submit();
        break;
      case 4:
        clock_.advance(Nanoseconds(random(400)));
        break;
      case 5:
      case 6:
        run();
        break;
      default:
        disturb();
    }
    expect_equal("waiting requests", executor_->queued(), reference_.waiting());
    expect_equal("sources", executor_->sources(), reference_.sources());
    expect_equal("running requests", executor_->running(), 0);
    expect(reference_.kept_its_bound(), "the reference let a source wait too long (B04)");
  }

  /// The last step: the executor goes.
  void finish() {
    for (auto& [number, future] : futures_) {
      expect(!is_ready(future), "a result came that nobody knows of");
    }
    executor_.reset();
    for (auto& [number, future] : futures_) {
      expect(outcome(std::move(future)) == kCancelledOutcome, "what waited was not cancelled");
    }
    futures_.clear();
  }
  std::size_t batches() { return log_.count(); }
  /// What the first difference was; empty: there is none.
  const std::string& difference() const { return difference_; }

 private:
  int random(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string any_source() { return "s" + std::to_string(random(ReferenceScheduler::kSources)); }

  void submit() {
    const std::string source = any_source();
    // Mostly the current generation, sometimes one that may have been cancelled.
    const Generation generation = generation_[source] - (random(6) == 0 ? 1 : 0);
    const int number = next_number_++;
    auto future = executor_->submit(numbered(source, number, generation), WhenFull::kRefuse);
    const auto refusal = reference_.submit(source, generation, number, clock_.now());
    expect(future.has_value() == !refusal.has_value(), "only one of the two took a request");
    if (future) {
      futures_.emplace(number, std::move(*future));
    } else if (refusal) {
      expect(future.error().kind() == *refusal, "a request was refused for another reason");
    }
  }

  void disturb() {
    const std::string source = any_source();
    if (random(3) == 0) {
      executor_->retire({source});
      reference_.retire(source);
      return;
    }
    const Generation generation = generation_[source] - static_cast<Generation>(random(2));
    if (random(2) == 0) ++generation_[source];
    executor_->cancel({source}, generation);
    for (const int number : reference_.cancel(source, generation)) expect_cancelled(number);
    for (auto it = in_flight_.begin(); it != in_flight_.end();) {
      if (it->source == source && it->generation <= generation) {
        expect_cancelled(it->number);
        it = in_flight_.erase(it);
      } else {
        ++it;
      }
    }
  }

  /// Inside a run: the state is that of a worker at work.
  void meddle() {
    expect_equal("running requests", executor_->running(), batch_.size());
    for (int i = random(4); i > 0; --i) random(2) == 0 ? submit() : disturb();
  }

  void run() {
    const bool due = reference_.is_due(clock_.now());
    in_flight_ = due ? reference_.take() : std::vector<ReferenceScheduler::Waiting>();
    batch_ = in_flight_;
    const bool ran = executor_->run_one();
    expect(ran == due, ran ? "a batch ran that is not due" : "a batch is due and did not run");
    if (!ran || !due) return;
    RunLog::Batch expected;
    for (const auto& waiting : batch_) expected.emplace_back(waiting.source, waiting.number);
    expect(log_.last() == expected, "another batch ran than the reference takes");
    for (const auto& waiting : batch_) reference_.finish(waiting.source);
    for (const auto& waiting : std::exchange(in_flight_, {})) {
      expect_outcome(waiting.number, waiting.number);
    }
  }

  void expect_cancelled(int number) { expect_outcome(number, kCancelledOutcome); }
  void expect_outcome(int number, int expected) {
    const auto found = futures_.find(number);
    if (found == futures_.end() || !is_ready(found->second)) {
      return expect(false, "a result is missing");
    }
    expect(outcome(std::move(found->second)) == expected, "a request has another outcome");
    futures_.erase(found);
  }

  void expect(bool as_expected, const char* what) {
    if (!as_expected && difference_.empty()) difference_ = what;
  }
  void expect_equal(const char* what, std::size_t here, std::size_t there) {
    if (here == there || !difference_.empty()) return;
    difference_ = std::string(what) + ": " + std::to_string(here) + ", and " +
                  std::to_string(there) + " by the reference";
  }

  std::mt19937_64 random_;
  ManualClock clock_;
  RunLog log_;
  ReferenceScheduler reference_;
  std::unique_ptr<SharedBatchExecutor> executor_;
  // Generations begin well above zero, so that there are older ones.
  std::map<std::string, Generation> generation_{{"s0", 5}, {"s1", 5}, {"s2", 5},
                                                {"s3", 5}, {"s4", 5}, {"s5", 5}};
  std::map<int, SharedBatchExecutor::Future> futures_;  // Not yet ready, by number.
  std::vector<ReferenceScheduler::Waiting> batch_;      // Running.
  std::vector<ReferenceScheduler::Waiting> in_flight_;  // Running and not cancelled.
  int next_number_ = 0;
  std::string difference_;
};

}  // namespace penstock::testing
