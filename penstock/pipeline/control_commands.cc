// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/control_commands.h"

#include <chrono>

#include "penstock/base/json_text.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/config_json.h"
#include "penstock/pipeline/pipeline_schema.h"

namespace penstock {
namespace {

/// Of the kinds, only a limit that is used up is told: it may pass.
std::string error_line(std::string_view what, bool is_exhausted = false) {
  std::string line =
      is_exhausted ? "{\"ok\":false,\"kind\":\"exhausted\",\"error\":" : "{\"ok\":false,\"error\":";
  append_json_string(line, what);
  return line + "}";
}

std::string error_line(const ConfigProblems& problems) {
  std::string what;
  for (const ConfigProblem& problem : problems) {
    what += (what.empty() ? "" : "; ") + to_string(problem, "");
  }
  return error_line(what);
}

std::string outcome_line(const Result<void>& outcome) {
  if (outcome) return "{\"ok\":true}";
  return error_line(outcome.error().message(), outcome.error().kind() == ErrorKind::kExhausted);
}

void append_text(std::string& line, std::string_view key, std::string_view value) {
  line += str_format("\"{}\":", key);
  append_json_string(line, value);
  line += ',';
}

template <typename T>
void append_number(std::string& line, std::string_view key, T value) {
  line += str_format("\"{}\":", key);
  append_json_number(line, value);
  line += ',';
}

/// Ends a map or list whose parts each end in a comma.
void close(std::string& line, char bracket) {
  if (line.back() == ',') line.pop_back();
  line += bracket;
}

void append_stats(std::string& line, const SourceStatus& source) {
  const auto ms = [](Nanoseconds value) { return double(value.count()) / 1e6; };
  append_number(line, "sessions", source.sessions);
  append_number(line, "frames", source.frames);
  append_number(line, "frames_per_second", source.frames_per_second());
  append_number(line, "objects", source.objects);
  const LatencyFigures latency = source.latency();
  append_number(line, "latency_p50_ms", ms(latency.p50));
  append_number(line, "latency_p95_ms", ms(latency.p95));
  if (source.error) append_text(line, "error", source.error->message());
  line += "\"labels\":{";
  for (const auto& [label, count] : source.labels) {
    append_json_string(line, label);
    line += ':';
    append_json_number(line, count);
    line += ',';
  }
  close(line, '}');
  line += ",\"places\":{";
  for (const auto& [place, counts] : source.places) {
    append_json_string(line, place);
    line += ":{";
    append_number(line, "entered", counts.entered);
    append_number(line, "left", counts.left);
    append_number(line, "forwards", counts.forwards);
    append_number(line, "backwards", counts.backwards);
    close(line, '}');
    line += ',';
  }
  close(line, '}');
}

std::string sources_line(const std::vector<SourceStatus>& sources, bool with_stats) {
  std::string line = "{\"ok\":true,\"sources\":[";
  for (const SourceStatus& source : sources) {
    line += '{';
    append_text(line, "name", source.name);
    append_text(line, "address", source.address);
    append_text(line, "state", to_string(source.state));
    if (with_stats) append_stats(line, source);
    close(line, '}');
    line += ',';
  }
  close(line, ']');
  return line + "}";
}

std::string add_source(ConfigMap& map, ConfigProblems& problems, ControlTarget& target) {
  const ConfigNode* node = map.node("source");
  if (node == nullptr) map.problem("source", "is missing");
  map.finish();
  PipelineSource source;
  if (node != nullptr) source = read_source(*node, "source", problems);
  return problems.empty() ? outcome_line(target.add(source)) : error_line(problems);
}

std::string remove_source(ConfigMap& map, const ConfigProblems& problems, ControlTarget& target) {
  const auto name = map.text("name");
  if (!map.has("name")) map.problem("name", "is missing");
  map.finish();
  if (!problems.empty() || !name) return error_line(problems);
  return outcome_line(target.remove(*name));
}

}  // namespace

std::string answer_control(std::string_view line, ControlTarget& target) {
  ConfigProblems problems;
  const auto root = parse_json(line, problems);
  if (!root) return error_line(problems);
  ConfigMap map(*root, "", problems);
  if (!problems.empty()) return error_line(problems);
  const auto command = map.choice("command", {"add", "remove", "list", "stats"});
  if (!map.has("command")) map.problem("command", "is missing");
  if (!command) return error_line(problems);
  if (*command == "add") return add_source(map, problems, target);
  if (*command == "remove") return remove_source(map, problems, target);
  map.finish();
  if (!problems.empty()) return error_line(problems);
  return sources_line(target.statuses(), *command == "stats");
}

}  // namespace penstock
