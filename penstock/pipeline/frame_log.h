// SPDX-License-Identifier: Apache-2.0
//
// FrameLog is what the sources of a pipeline write together: the JSON line of every frame, and the
// events of their zones. Lines of one source keep their order. Thread-safe.
//
//   auto log = FrameLog::open(json, events, files, clock);
//   log->on_failure = ...;                        // before the first line
//   log->write(result);
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/pipeline/json_lines.h"
#include "penstock/records/records.h"

namespace penstock {

/// What penzone said; docs/json.md has the line.
struct PlaceEvent {
  std::string source;
  std::string event;  ///< "entered", "left", "crossed-forwards", "crossed-backwards".
  std::string place;
  std::string label;
  std::int64_t track_id = 0;
  std::int64_t time_ns = -1;   ///< In the times of the source's frames; -1: none.
  std::int64_t dwell_ns = -1;  ///< "left" only.
};

class FrameLog {
 public:
  /// Creates the files; an empty path is no file.
  static Result<std::unique_ptr<FrameLog>> open(const std::filesystem::path& json,
                                                const std::filesystem::path& events, FileOps& files,
                                                Clock& clock);

  /// Called once, on the thread whose line was the first that could not be written.
  std::function<void()> on_failure;

  void write(const FrameResult& result);
  void write(const PlaceEvent& event);
  bool has_failed() const;
  /// The first failure of a line or of closing.
  Result<void> close();

 private:
  FrameLog() = default;
  void note(Result<void> written);

  mutable std::mutex mutex_;
  std::unique_ptr<JsonLinesWriter> json_;
  std::unique_ptr<JsonLinesWriter> events_;
  std::optional<Error> failed_;
};

}  // namespace penstock
