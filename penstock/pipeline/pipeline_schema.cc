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
constexpr std::array<std::string_view, 12> kInferKeys{
    "policy",        "workers",     "batch-size", "queue-depth", "interval", "max-wait",
    "iou-threshold", "max-objects", "labels",     "roi",         "tiles",    "tile-overlap"};

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

/// Texts of a list as peninfer takes them, or one text.
std::optional<Setting> read_names(ConfigMap& map, std::string_view key, ConfigProblems& problems) {
  const ConfigNode* node = map.node(key);
  if (node == nullptr) return std::nullopt;
  if (node->kind != ConfigNode::Kind::kList) {
    const auto text = map.text(key);
    return text ? std::optional(Setting{std::string(key), *text, map.place(key)}) : std::nullopt;
  }
  std::string names;
  for (const ConfigNode& item : node->items) {
    if (item.kind != ConfigNode::Kind::kText || item.text.empty() ||
        item.text.find(',') != std::string::npos) {
      add_problem(problems, item.place, map.path(key), "must be labels without commas");
      return std::nullopt;
    }
    names += (names.empty() ? "" : ",") + item.text;
  }
  if (names.empty()) map.problem(key, "is empty");
  return Setting{std::string(key), names, map.place(key)};
}

/// Keys of a stage that are peninfer's properties of the same name, and what they are for.
struct StageKey {
  std::string_view name;
  std::optional<StageRoi> roi{};
};
constexpr std::array<StageKey, 14> kStageKeys{{{"object-min-size", StageRoi::kObjects},
                                               {"reinfer-interval", StageRoi::kObjects},
                                               {"tiles", StageRoi::kTiles},
                                               {"tile-overlap", StageRoi::kTiles},
                                               {"threshold"},
                                               {"iou-threshold"},
                                               {"max-objects"},
                                               {"labels"},
                                               {"interval"},
                                               {"batch-size"},
                                               {"workers"},
                                               {"queue-depth"},
                                               {"policy"},
                                               {"max-wait"}}};

constexpr std::array<std::pair<std::string_view, StageRoi>, 3> kRois{
    {{"objects", StageRoi::kObjects},
     {"tiles", StageRoi::kTiles},
     {"full-frame", StageRoi::kFullFrame}}};

StageSpec read_stage(const ConfigNode& node, const std::string& path, ConfigProblems& problems) {
  StageSpec stage;
  stage.place = node.place;
  stage.roi_place = node.place;
  ConfigMap map(node, path, problems);
  if (node.kind != ConfigNode::Kind::kMap) return stage;
  stage.model = map.text("model").value_or("");
  stage.model_place = map.place("model");
  if (!map.has("model")) map.problem("model", "is missing");
  const auto chosen = map.choice("roi", {"objects", "tiles", "full-frame"});
  for (const auto& [name, roi] : kRois) {
    if (chosen == name) stage.roi = roi;
  }
  stage.roi_place = map.place("roi");
  if (auto classes = read_names(map, "object-classes", problems)) {
    if (stage.roi != StageRoi::kObjects) map.problem("object-classes", "is for `roi: objects`");
    stage.settings.push_back(std::move(*classes));
  }
  for (const StageKey& key : kStageKeys) {
    const auto value = map.text(key.name);
    if (!value) continue;
    if (key.roi && *key.roi != stage.roi) {
      map.problem(key.name, str_format("is for `roi: {}`", name_of(*key.roi)));
    }
    stage.settings.push_back({std::string(key.name), *value, map.place(key.name)});
  }
  map.finish();
  return stage;
}

void read_stages(ConfigMap& map, PipelineSpec& spec, ConfigProblems& problems) {
  const auto& items = map.list("stages");
  if (items.size() > kMaxPipelineStages) {
    map.problem("stages",
                str_format("are {}; at most {} are taken", items.size(), kMaxPipelineStages));
    return;
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string path = str_format("stages[{}]", i);
    spec.stages.push_back(read_stage(items[i], path, problems));
    const Setting* again = spec.stages.back().setting("reinfer-interval");
    if (again != nullptr && !spec.track) {
      add_problem(problems, again->place, path + ".reinfer-interval",
                  "counts frames of one object, which needs tracks: say `track: true`");
    }
  }
}

void read_outputs(ConfigMap& map, PipelineSpec& spec, ConfigProblems& problems) {
  const ConfigNode* node = map.node("outputs");
  if (node == nullptr) return;
  ConfigMap outputs(*node, "outputs", problems);
  spec.json = output_of(outputs.text("json").value_or(""));
  spec.json_place = outputs.place("json");
  spec.events = output_of(outputs.text("events").value_or(""));
  spec.events_place = outputs.place("events");
  spec.report = output_of(outputs.text("report").value_or(""));
  spec.report_place = outputs.place("report");
  spec.video = outputs.text("video").value_or("");
  spec.video_place = outputs.place("video");
  if (spec.video == "-") {
    outputs.problem("video", "is '-', and an MP4 is not written from its start to its end");
  }
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

void check_regions(const PipelineSpec& spec, ConfigProblems& problems) {
  const auto roi = std::ranges::find(spec.infer, "roi", &Setting::name);
  if (roi != spec.infer.end() && roi->value == "objects") {
    add_problem(problems, roi->place, "roi",
                "is `objects`, and nobody has found any before the first model: see `stages`");
  }
  if (roi != spec.infer.end() && roi->value == "tiles") return;
  for (const Setting& setting : spec.infer) {
    if (!setting.name.starts_with("tile")) continue;
    add_problem(problems, setting.place, setting.name, "is for `roi: tiles`");
  }
}

/// What holds between the parts.
void check_whole(ConfigMap& map, const PipelineSpec& spec, ConfigProblems& problems) {
  check_regions(spec, problems);
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
  const ConfigNode* sources = map.node("sources");
  if (sources == nullptr) {
    map.problem("sources", "is missing");
  } else if (sources->kind == ConfigNode::Kind::kList && sources->items.empty() &&
             !spec.stay_open) {
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

std::string_view name_of(StageRoi roi) {
  return std::ranges::find(kRois, roi, &decltype(kRois)::value_type::second)->first;
}

const Setting* StageSpec::setting(std::string_view name) const {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found != settings.end() ? &*found : nullptr;
}

std::string output_of(std::string_view text) {
  return std::string(text == "-" ? "/dev/stdout" : text);
}

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
  read_stages(map, spec, problems);
  read_outputs(map, spec, problems);
  spec.control = map.text("control").value_or("");
  spec.control_place = map.place("control");
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
