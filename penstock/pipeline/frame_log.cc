// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/frame_log.h"

#include <utility>

#include "penstock/base/json_text.h"

namespace penstock {
namespace {

std::string to_json_line(const PlaceEvent& event) {
  std::string line = "{\"source\":";
  append_json_string(line, event.source);
  line += ",\"event\":";
  append_json_string(line, event.event);
  line += ",\"place\":";
  append_json_string(line, event.place);
  line += ",\"label\":";
  append_json_string(line, event.label);
  line += ",\"track_id\":";
  append_json_number(line, event.track_id);
  line += ",\"time_ns\":";
  append_json_number(line, event.time_ns);
  if (event.dwell_ns >= 0) {
    line += ",\"dwell_ns\":";
    append_json_number(line, event.dwell_ns);
  }
  return line + "}";
}

}  // namespace

Result<std::unique_ptr<FrameLog>> FrameLog::open(const std::filesystem::path& json,
                                                 const std::filesystem::path& events,
                                                 FileOps& files, Clock& clock) {
  std::unique_ptr<FrameLog> log(new FrameLog);
  for (const auto& [path, writer] :
       {std::pair{&json, &log->json_}, std::pair{&events, &log->events_}}) {
    if (path->empty()) continue;
    auto made = JsonLinesWriter::create(*path, files, clock);
    if (!made) return std::unexpected(std::move(made).error());
    *writer = std::move(*made);
  }
  return log;
}

/// With the lock held.
void FrameLog::note(Result<void> written) {
  if (written || failed_) return;
  failed_ = std::move(written).error();
  if (on_failure) on_failure();
}

void FrameLog::write(const FrameResult& result) {
  const std::lock_guard lock(mutex_);
  if (json_ != nullptr) note(json_->write(result));
}

void FrameLog::write(const PlaceEvent& event) {
  const std::lock_guard lock(mutex_);
  if (events_ == nullptr) return;
  note(events_->write_line(to_json_line(event)));
  note(events_->flush());  // The next may come in hours.
}

bool FrameLog::has_failed() const {
  const std::lock_guard lock(mutex_);
  return failed_.has_value();
}

Result<void> FrameLog::close() {
  const std::lock_guard lock(mutex_);
  for (auto* writer : {&json_, &events_}) {
    if (*writer == nullptr) continue;
    if (auto closed = (*writer)->close(); !closed && !failed_) failed_ = std::move(closed).error();
  }
  if (failed_) return std::unexpected(*failed_);
  return {};
}

}  // namespace penstock
