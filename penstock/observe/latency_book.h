// SPDX-License-Identifier: Apache-2.0
//
// LatencyBook keeps how long frames stay in each stage of a pipeline, by stream: from a frame's
// arrival to the moment that it leaves, on the monotonic clock.
//
//   LatencyBook book;
//   const auto stage = book.stage("infer");
//   book.arrive(stage, {.pts_ns = pts, .memory = memory}, "door");   // on the sink pad's thread
//   book.leave(stage, {.pts_ns = pts, .memory = memory});            // on the source pad's thread
//   for (const LatencyFigures& row : book.figures()) ...
//
// Who leaves is who arrived with the same memory and time, else with the same time, else with the
// same memory: a stage may put frames in another order, write them into new memory (a decoder,
// drawing), or give them new times, but not both of the last.
//
// Bounded whatever passes: kMaxWaiting frames a stage (of more the longest waiting are given up and
// counted), kMaxStages stages, kMaxRows streams of stages; what is more goes into a row named
// "(more)".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/observe/latency.h"

namespace penstock {

/// What a frame is known by on both sides of a stage.
struct PassingFrame {
  std::int64_t pts_ns = -1;      ///< -1: none.
  const void* memory = nullptr;  ///< Where its pixels are; null: not known.
};

/// Of one stream in one stage.
struct LatencyFigures {
  std::string stage;
  std::string stream;
  std::uint64_t frames = 0;
  Nanoseconds p50{}, p95{}, max{};  ///< `max` is exact, percentiles within 1 %.
};

/// Thread-safe.
class LatencyBook {
 public:
  static constexpr std::size_t kMaxWaiting = 512;
  static constexpr std::size_t kMaxStages = 256;
  static constexpr std::size_t kMaxRows = 512;
  static constexpr std::string_view kMore = "(more)";

  explicit LatencyBook(Clock& clock = Clock::system()) : clock_(clock) {}
  LatencyBook(const LatencyBook&) = delete;
  LatencyBook& operator=(const LatencyBook&) = delete;

  class Stage;
  /// The stage of this name, made by who asks first; lives as long as the book.
  Stage* stage(std::string_view name);

  void arrive(Stage* stage, const PassingFrame& frame, std::string_view stream);
  /// False, and nothing is kept, for a frame that has not arrived.
  bool leave(Stage* stage, const PassingFrame& frame);
  /// Those that wait will not leave: a flush.
  void forget(Stage* stage);
  /// Those of one stream: it begins anew.
  void forget(Stage* stage, std::string_view stream);

  /// Stages in the order in which they were made, streams by name; without frames: left out.
  std::vector<LatencyFigures> figures() const;
  /// Frames that were given up since more came than may wait: what a stage drops or swallows.
  std::uint64_t given_up() const;

 private:
  struct Row {
    LatencyHistogram times;
    Nanoseconds max{};
  };
  /// With the stage's lock held.
  Row& row_of(Stage& stage, std::string_view stream);

  Clock& clock_;
  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<Stage>> stages_;
  std::atomic<std::size_t> rows_{0};
};

class LatencyBook::Stage {
 public:
  explicit Stage(std::string name) : name_(std::move(name)) {}

 private:
  friend class LatencyBook;
  struct Waiting {
    PassingFrame frame;
    TimePoint since;
    Row* row = nullptr;
  };

  const std::string name_;
  mutable std::mutex mutex_;  // may be taken while the book's is held, never the other way round
  std::map<std::string, Row, std::less<>> rows_;
  std::deque<Waiting> waiting_;
  std::uint64_t given_up_ = 0;
};

}  // namespace penstock
