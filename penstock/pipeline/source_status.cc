// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source_status.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "penstock/base/printable.h"
#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"

namespace penstock {

std::string_view to_string(SourceState state) {
  switch (state) {
    case SourceState::kConnecting:
      return "connecting";
    case SourceState::kOnline:
      return "online";
    case SourceState::kStalled:
      return "stalled";
    case SourceState::kOffline:
      return "offline";
    case SourceState::kEnded:
      return "ended";
    case SourceState::kAbsent:
      return "absent";
    case SourceState::kFailed:
      return "failed";
  }
  return "";
}

double SourceStatus::frames_per_second() const {
  const double seconds = std::chrono::duration<double>(online).count();
  return seconds > 0 && frames > 1 ? double(frames) / seconds : 0;
}

LatencyFigures SourceStatus::latency() const {
  const auto infer = std::ranges::find(stages, "infer", &LatencyFigures::stage);
  return infer != stages.end() ? *infer : LatencyFigures{};
}

std::vector<LatencyFigures> by_stage(const std::vector<SourceStatus>& sources) {
  std::vector<LatencyFigures> stages;
  std::vector<std::string> order;
  for (const SourceStatus& source : sources) {
    for (const LatencyFigures& row : source.stages) {
      stages.push_back(row);
      if (std::ranges::find(order, row.stage) == order.end()) order.push_back(row.stage);
    }
  }
  std::ranges::stable_sort(stages, {}, [&order](const LatencyFigures& row) {
    return std::ranges::find(order, row.stage) - order.begin();
  });
  return stages;
}

std::string to_table(const std::vector<SourceStatus>& sources) {
  std::string out;
  std::size_t width = 6;
  for (const SourceStatus& source : sources) width = std::max(width, source.name.size());
  const auto ms = [](Nanoseconds value) { return double(value.count()) / 1e6; };
  str_append(out, "{:<{}}  {:<10} {:>8} {:>9} {:>8} {:>8}  latency p50, p95 ms\n", "source", width,
             "state", "frames", "frames/s", "objects", "sessions");
  for (const SourceStatus& source : sources) {
    const LatencyFigures latency = source.latency();
    str_append(out, "{:<{}}  {:<10} {:>8} {:>9.1f} {:>8} {:>8}  {}\n", source.name, width,
               to_string(source.state), source.frames, source.frames_per_second(), source.objects,
               source.sessions,
               source.frames > 0 ? str_format("{:.2f} {:.2f}", ms(latency.p50), ms(latency.p95))
                                 : std::string("-"));
    std::vector<std::pair<std::string, std::uint64_t>> labels(source.labels.begin(),
                                                              source.labels.end());
    std::ranges::stable_sort(labels, std::greater{}, [](const auto& item) { return item.second; });
    for (const auto& [label, count] : labels) {
      str_append(out, "  {:<22} {:>8}\n", printable(label), count);
    }
    for (const auto& [place, counts] : source.places) {
      if (counts.forwards + counts.backwards > 0) {
        str_append(out, "  {:<22} {:>8} forwards {:>8} backwards\n", printable(place),
                   counts.forwards, counts.backwards);
      } else {
        str_append(out, "  {:<22} {:>8} entered  {:>8} left\n", printable(place), counts.entered,
                   counts.left);
      }
    }
  }
  return out + stage_rows(by_stage(sources));
}

std::string to_stats_line(const SourceStatus& source) {
  return str_format("stats: {} {}, {} frames, {:.1f} a second, {} objects", source.name,
                    to_string(source.state), source.frames, source.frames_per_second(),
                    source.objects);
}

}  // namespace penstock
