// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/latency_book.h"

#include <algorithm>
#include <ranges>

namespace penstock {

LatencyBook::Stage* LatencyBook::stage(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto of_name = [name](const auto& stage) { return stage->name_ == name; };
  if (const auto found = std::ranges::find_if(stages_, of_name); found != stages_.end()) {
    return found->get();
  }
  if (stages_.size() > kMaxStages) return stages_.back().get();
  const bool is_last = stages_.size() == kMaxStages;
  stages_.push_back(std::make_unique<Stage>(std::string(is_last ? kMore : name)));
  return stages_.back().get();
}

LatencyBook::Row& LatencyBook::row_of(Stage& stage, std::string_view stream) {
  if (const auto found = stage.rows_.find(stream); found != stage.rows_.end()) return found->second;
  if (rows_.load(std::memory_order_relaxed) >= kMaxRows) stream = kMore;
  const auto [entry, is_new] = stage.rows_.try_emplace(std::string(stream));
  if (is_new) rows_.fetch_add(1, std::memory_order_relaxed);
  return entry->second;
}

void LatencyBook::arrive(Stage* stage, const PassingFrame& frame, std::string_view stream) {
  const TimePoint now = clock_.now();
  const std::lock_guard lock(stage->mutex_);
  if (stage->waiting_.size() == kMaxWaiting) {
    stage->waiting_.pop_front();
    ++stage->given_up_;
  }
  stage->waiting_.push_back({frame, now, &row_of(*stage, stream)});
}

bool LatencyBook::leave(Stage* stage, const PassingFrame& frame) {
  const TimePoint now = clock_.now();
  const std::lock_guard lock(stage->mutex_);
  auto& waiting = stage->waiting_;
  auto of_time = waiting.end();
  auto of_memory = waiting.end();
  auto found = waiting.end();
  for (auto at = waiting.begin(); at != waiting.end(); ++at) {
    const bool same_time = frame.pts_ns >= 0 && at->frame.pts_ns == frame.pts_ns;
    const bool same_memory = frame.memory != nullptr && at->frame.memory == frame.memory;
    if (same_memory && at->frame.pts_ns == frame.pts_ns) {
      found = at;
      break;
    }
    if (same_time && of_time == waiting.end()) of_time = at;
    // Memory is used again; whoever had it before and still waits was dropped.
    if (same_memory) of_memory = at;
  }
  if (found == waiting.end()) found = of_time != waiting.end() ? of_time : of_memory;
  if (found == waiting.end()) return false;
  const Nanoseconds passed = now - found->since;
  found->row->times.record(passed);
  found->row->max = std::max(found->row->max, passed);
  waiting.erase(found);
  return true;
}

void LatencyBook::forget(Stage* stage) {
  const std::lock_guard lock(stage->mutex_);
  stage->waiting_.clear();
}

void LatencyBook::forget(Stage* stage, std::string_view stream) {
  const std::lock_guard lock(stage->mutex_);
  const auto found = stage->rows_.find(stream);
  if (found == stage->rows_.end()) return;
  std::erase_if(stage->waiting_, [row = &found->second](const Stage::Waiting& waiting) {
    return waiting.row == row;
  });
}

std::vector<LatencyFigures> LatencyBook::figures() const {
  std::vector<const Stage*> stages;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& stage : stages_) stages.push_back(stage.get());
  }
  std::vector<LatencyFigures> figures;
  for (const Stage* stage : stages) {
    const std::lock_guard lock(stage->mutex_);
    for (const auto& [stream, row] : stage->rows_) {
      const std::uint64_t frames = row.times.count();
      if (frames == 0) continue;
      // A percentile is a bucket's upper edge, which may lie beyond what was seen.
      figures.push_back({.stage = stage->name_,
                         .stream = stream,
                         .frames = frames,
                         .p50 = std::min(row.times.percentile(0.5), row.max),
                         .p95 = std::min(row.times.percentile(0.95), row.max),
                         .max = row.max});
    }
  }
  return figures;
}

std::uint64_t LatencyBook::given_up() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& stage : stages_) {
    const std::lock_guard of_stage(stage->mutex_);
    sum += stage->given_up_;
  }
  return sum;
}

}  // namespace penstock
