// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_schema.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "penstock/base/small_file.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/config_yaml.h"
#include "penstock/pipeline/source_address.h"

namespace penstock {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

/// Keys of the whole that are peninfer's properties of the same name. Which library runs a model is
/// not among them: only who runs the command says that.
constexpr std::array<std::string_view, 9> kInferKeys{"policy",        "workers",     "batch-size",
                                                     "queue-depth",   "interval",    "max-wait",
                                                     "iou-threshold", "max-objects", "labels"};

constexpr std::array<std::string_view, 4> kSourceKeys{"file", "uri", "v4l2", "test"};
constexpr int kMaxTestSide = 8192;

/// The properties of an element in a map, whatever their names: the element knows them.
std::vector<Setting> read_settings(const ConfigNode& node, const std::string& path,
                                   ConfigProblems& problems) {
  std::vector<Setting> settings;
  for (const ConfigEntry& entry : node.entries) {
    const std::string where = str_format("{}.{}", path, entry.name);
    if (entry.value.kind != ConfigNode::Kind::kText) {
      add_problem(problems, entry.value.place, where, "must be a number, a boolean or text");
      continue;
    }
    settings.push_back({entry.name, entry.value.text, entry.value.place});
  }
  return settings;
}

TestPattern read_test(const ConfigNode& node, const std::string& path, ConfigProblems& problems) {
  TestPattern test;
  ConfigMap map(node, path, problems);
  test.pattern =
      map.choice("pattern", {"ball", "smpte", "snow", "black", "white", "red", "green", "blue"})
          .value_or(test.pattern);
  for (auto [key, side] : {std::pair{"width", &test.width}, std::pair{"height", &test.height}}) {
    *side = int(map.integer(key, 2, kMaxTestSide).value_or(*side));
    if (*side % 2 != 0) map.problem(key, str_format("must be even, is {}", *side));
  }
  test.rate = int(map.integer("rate", 1, 1000).value_or(test.rate));
  test.frames = std::uint64_t(map.integer("frames", 0, 1'000'000'000).value_or(0));
  test.live = map.boolean("live").value_or(test.live);
  map.finish();
  return test;
}

/// Which of kSourceKeys says where the frames come from; empty, and a problem, for none or several.
std::string_view key_of_source(ConfigMap& map, const std::string& path, TextPlace place,
                               ConfigProblems& problems) {
  std::string_view found;
  for (std::string_view key : kSourceKeys) {
    if (!map.has(key)) continue;
    if (!found.empty()) {
      map.problem(key, str_format("is told beside '{}'; a source has one of them", found));
      return {};
    }
    found = key;
  }
  if (found.empty()) {
    add_problem(problems, place, path, "needs one of file, uri, v4l2 and test");
  }
  return found;
}

void read_address(ConfigMap& map, std::string_view key, PipelineSource& source,
                  ConfigProblems& problems) {
  if (key == "test") {
    source.kind = PipelineSourceKind::kTest;
    source.test = read_test(*map.node(key), map.path(key), problems);
    return;
  }
  source.address = map.text(key).value_or("");
  source.kind = key == "v4l2" ? PipelineSourceKind::kDevice : PipelineSourceKind::kFile;
  if (source.address.empty() || key != "uri") return;
  if (is_rtsp_address(source.address)) {
    source.kind = PipelineSourceKind::kRtsp;
  } else if (!source.address.starts_with("file://")) {
    map.problem(key, "only rtsp://, rtsps:// and file:// addresses are supported");
  }
}

void read_places(ConfigMap& map, PipelineSource& source) {
  source.zones = map.text("zones").value_or("");
  source.lines = map.text("lines").value_or("");
}

void read_tracker(ConfigMap& map, PipelineSpec& spec, ConfigProblems& problems) {
  const ConfigNode* node = map.node("track");
  if (node == nullptr) return;
  spec.track_place = node->place;
  if (node->kind != ConfigNode::Kind::kMap) {
    spec.track = map.boolean("track").value_or(false);
    return;
  }
  spec.track = true;
  spec.tracker = read_settings(*node, "track", problems);
}

void read_outputs(ConfigMap& map, PipelineSpec& spec, ConfigProblems& problems) {
  const ConfigNode* node = map.node("outputs");
  if (node == nullptr) return;
  ConfigMap outputs(*node, "outputs", problems);
  spec.json = outputs.text("json").value_or("");
  spec.events = outputs.text("events").value_or("");
  spec.video = outputs.text("video").value_or("");
  spec.video_place = outputs.place("video");
  outputs.finish();
}

void read_sources(ConfigMap& map, PipelineSpec& spec, ConfigProblems& problems) {
  const auto& items = map.list("sources");
  if (items.size() > kMaxPipelineSources) {
    map.problem("sources",
                str_format("are {}; at most {} are taken", items.size(), kMaxPipelineSources));
    return;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    spec.sources.push_back(read_source(items[i], str_format("sources[{}]", i), problems));
  }
}

/// What holds between the parts.
void check_whole(ConfigMap& map, const PipelineSpec& spec, ConfigProblems& problems) {
  std::set<std::string, std::less<>> names;
  for (std::size_t i = 0; i < spec.sources.size(); ++i) {
    const PipelineSource& source = spec.sources[i];
    const std::string where = str_format("sources[{}]", i);
    if (!source.name.empty() && !names.insert(source.name).second) {
      add_problem(problems, source.place, where + ".name",
                  str_format("'{}' is the name of another source", source.name));
    }
    if (source.loop && !spec.video.empty()) {
      add_problem(problems, source.place, where + ".loop",
                  "would write video files for ever; leave out outputs.video or loop");
    }
    if ((!source.zones.empty() || !source.lines.empty()) && !spec.track) {
      add_problem(problems, source.place, where, "zones and lines need tracks: say `track: true`");
    }
  }
  if (spec.sources.empty() && !map.has("sources")) {
    map.problem("sources", "is missing");
  } else if (spec.sources.empty() && !spec.stay_open) {
    map.problem("sources", "is empty, and without `stay-open: true` nothing would come");
  }
  if (spec.stay_open && spec.control.empty()) {
    map.problem("stay-open", "needs a `control` socket: nobody could add a source");
  }
  const bool several = spec.sources.size() > 1 || !spec.control.empty();
  if (!spec.video.empty() && several && spec.video.find(kSourceMark) == std::string::npos) {
    add_problem(problems, spec.video_place, "outputs.video",
                "must hold {source}: there may be several, and each has a file of its own");
  }
}

}  // namespace

bool valid_source_name(std::string_view name) {
  constexpr std::string_view kTaken =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(kTaken) == std::string_view::npos;
}

std::string shown_address(const PipelineSource& source) {
  if (source.kind == PipelineSourceKind::kTest) return str_format("test:{}", source.test.pattern);
  return source.kind == PipelineSourceKind::kRtsp ? without_password(source.address)
                                                  : source.address;
}

PipelineSource read_source(const ConfigNode& node, const std::string& path,
                           ConfigProblems& problems) {
  PipelineSource source;
  source.place = node.place;
  ConfigMap map(node, path, problems);
  if (node.kind != ConfigNode::Kind::kMap) return source;
  const auto name = map.text("name");
  if (!map.has("name")) {
    add_problem(problems, node.place, path, "needs a name");
  } else if (name && !valid_source_name(*name)) {
    map.problem("name", "must be 1 to 64 letters, digits, '_' or '-'");
  } else {
    source.name = name.value_or("");
  }
  const std::string_view key = key_of_source(map, path, node.place, problems);
  if (!key.empty()) read_address(map, key, source, problems);
  for (std::string_view known : kSourceKeys) map.node(known);
  source.loop = map.boolean("loop").value_or(false);
  const bool is_camera =
      source.kind == PipelineSourceKind::kRtsp || source.kind == PipelineSourceKind::kDevice;
  source.reconnect = map.boolean("reconnect").value_or(is_camera);
  if (!key.empty() && source.loop && source.kind != PipelineSourceKind::kFile) {
    map.problem("loop", "is for files");
  }
  if (!key.empty() && source.reconnect && !is_camera) {
    map.problem("reconnect", "is for cameras; a file is begun again by `loop`");
  }
  read_places(map, source);
  map.finish();
  return source;
}

std::optional<PipelineSpec> read_pipeline(std::string_view text, ConfigProblems& problems) {
  const auto root = parse_yaml(text, problems);
  if (!root) return std::nullopt;
  ConfigMap map(*root, "", problems);
  if (root->kind != ConfigNode::Kind::kMap) return std::nullopt;
  PipelineSpec spec;
  spec.model = map.text("model").value_or("");
  spec.model_place = map.place("model");
  if (!map.has("model")) map.problem("model", "is missing");
  spec.device = map.text("device").value_or(spec.device);
  spec.device_place = map.place("device");
  if (const auto threshold = map.number("threshold", 0, 1)) spec.threshold = float(*threshold);
  for (std::string_view key : kInferKeys) {
    if (const auto value = map.text(key)) {
      spec.infer.push_back({std::string(key), *value, map.place(key)});
    }
  }
  spec.convert = map.boolean("convert").value_or(false);
  read_tracker(map, spec, problems);
  read_outputs(map, spec, problems);
  spec.control = map.text("control").value_or("");
  spec.stay_open = map.boolean("stay-open").value_or(false);
  spec.stall_after = map.duration("stall-after", seconds(1), hours(1)).value_or(spec.stall_after);
  spec.stats_interval =
      map.duration("stats-interval", seconds(0), hours(24)).value_or(spec.stats_interval);
  read_sources(map, spec, problems);
  check_whole(map, spec, problems);
  map.finish();
  // By place, as a reader goes through the text.
  std::ranges::stable_sort(problems, {}, [](const ConfigProblem& problem) {
    return std::pair(problem.place.line, problem.place.column);
  });
  return spec;
}

Result<std::string> read_config_file(const std::filesystem::path& path) {
  return read_small_file(path, kMaxConfigBytes);
}

}  // namespace penstock
