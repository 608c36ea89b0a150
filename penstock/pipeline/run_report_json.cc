// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "penstock/pipeline/report_json.h"
#include "penstock/pipeline/run_report.h"

namespace penstock {
namespace {

void append_places(JsonText& json, const RunSummary& summary) {
  const double frames = double(std::max<std::uint64_t>(summary.frames, 1));
  json.key("zones").begin('[');
  for (const ZoneSum& zone : summary.zones) {
    json.begin('{').key("name").text(zone.last.name);
    json.key("inside_a_frame").number(double(zone.in_frames) / frames);
    json.key("most_inside").number(zone.most).key("entered").number(zone.last.entered);
    json.key("left").number(zone.last.left).end('}');
  }
  json.end(']').key("lines").begin('[');
  for (const LineCount& line : summary.lines) {
    json.begin('{').key("name").text(line.name).key("forwards").number(line.forwards);
    json.key("backwards").number(line.backwards).end('}');
  }
  json.end(']');
}

/// What peninfer's own clockwork says, within its element's latency.
void append_inside(JsonText& json, const RunSummary& summary) {
  json.key("inside_infer").begin('[');
  for (Stage stage : kStages) {
    const LatencyHistogram& times = summary.of(stage);
    if (times.count() == 0) continue;
    json.begin('{').key("stage").text(to_string(stage)).key("frames").number(times.count());
    for (const auto& [name, part] :
         {std::pair{"p50_ns", 0.5}, {"p95_ns", 0.95}, {"p99_ns", 0.99}}) {
      json.key(name).number(std::int64_t{times.percentile(part).count()});
    }
    json.end('}');
  }
  json.end(']');
}

}  // namespace

bool is_json_report(const std::filesystem::path& path) { return path.extension() == ".json"; }

std::string to_json(const RunSummary& summary) {
  const auto seconds = [](Nanoseconds value) {
    return std::chrono::duration<double>(value).count();
  };
  JsonText json;
  json.begin('{').key("source").text(summary.source).key("model").text(summary.model);
  json.key("task").text(summary.task).key("device").text(summary.device);
  json.key("policy").text(summary.policy).key("threshold").number(summary.threshold);
  json.key("width").number(summary.shape.width).key("height").number(summary.shape.height);
  json.key("frames").number(summary.frames);
  json.key("frames_per_second").number(summary.frames_per_second());
  json.key("set_up_s")
      .number(seconds(summary.set_up))
      .key("running_s")
      .number(seconds(summary.running));
  json.key("cpu_ns_a_frame")
      .number(std::int64_t(summary.cpu.count()) /
              std::int64_t(std::max<std::uint64_t>(summary.frames, 1)));
  json.key("objects").number(summary.objects).key("tracks").number(summary.tracks());
  json.key("labels").begin('{');
  for (const auto& [label, sum] : summary.sums) json.key(label).number(sum);
  json.end('}');
  append_places(json, summary);
  append_stages(json, summary.stages);
  append_inside(json, summary);
  append_ledger(json, summary.ledger);
  json.key("notes").begin('[');
  for (const std::string& note : summary.notes) json.text(note);
  return json.end(']').end('}').take() + "\n";
}

}  // namespace penstock
