// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/stage_check.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/pipeline/bus_error.h"
#include "penstock/pipeline/shared_model.h"

namespace penstock {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, at);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

bool finds_objects(const Manifest& manifest) {
  return subject_of(manifest.task) == Subject::kObjects;
}

/// On the device, of which a frame has room for one model's.
bool leaves_pictures(const Manifest& manifest) {
  return manifest.task == "instance-segmentation" || manifest.task == "semantic-segmentation" ||
         manifest.task == "raw";
}

/// What is known of a frame when a stage gets it.
struct Known {
  bool has_objects = false;
  bool names_all = true;  ///< False: a model before has no labels.
  std::vector<std::string> labels;
  bool has_pictures = false;
  bool looked_at_objects = false;
  bool complete = true;  ///< False: a model before was not found.

  void add(const Manifest& manifest, const Setting* renamed) {
    if (!finds_objects(manifest)) return;
    has_objects = true;
    const auto given = renamed != nullptr ? split(renamed->value) : manifest.labels;
    if (given.empty()) names_all = false;
    labels.insert(labels.end(), given.begin(), given.end());
  }
};

void check_classes(const StageSpec& stage, const Known& known, const std::string& path,
                   ConfigProblems& problems) {
  const Setting* classes = stage.setting("object-classes");
  if (classes == nullptr || !known.complete || !known.names_all) return;
  for (const std::string& wanted : split(classes->value)) {
    if (std::ranges::contains(known.labels, wanted)) continue;
    constexpr std::size_t kShown = 10;
    std::string labels;
    for (std::size_t i = 0; i < std::min(known.labels.size(), kShown); ++i) {
      labels += (i == 0 ? "" : ", ") + known.labels[i];
    }
    if (known.labels.size() > kShown) labels += ", ...";
    add_problem(problems, classes->place, path + ".object-classes",
                str_format("nobody before it finds '{}'; there are {}", wanted, labels));
  }
}

void check_roi(const PipelineSpec& spec, const StageSpec& stage, const Manifest& manifest,
               const Known& known, const std::string& path, ConfigProblems& problems) {
  const auto problem = [&](const std::string& what) {
    add_problem(problems, stage.roi_place, path + ".roi", what);
  };
  if (stage.roi == StageRoi::kObjects) {
    if (known.complete && !known.has_objects) {
      problem("is `objects`, and no model before it finds any");
    }
    return;
  }
  if (stage.roi == StageRoi::kTiles && manifest.task != "detection") {
    problem(str_format("tiles are for models of task 'detection'; '{}' is of task '{}'",
                       manifest.name, manifest.task));
  }
  if (known.has_pictures && leaves_pictures(manifest)) {
    problem("a frame keeps the masks or tensors of one model that looks at all of it");
  }
  if (spec.track && known.looked_at_objects && finds_objects(manifest)) {
    problem(
        "finds objects, which get no tracks behind a stage that looks at objects: put it before");
  }
}

}  // namespace

void note_problem(ConfigProblems& problems, TextPlace place, const std::string& where,
                  const Result<void>& outcome) {
  if (!outcome) add_problem(problems, place, where, outcome.error().message());
}

void check_settings(const std::string& factory, const std::vector<Setting>& settings,
                    const std::string& path, ConfigProblems& problems) {
  auto element = make_element(factory.c_str());
  if (!element) {
    add_problem(problems, {}, path, element.error().message());
    return;
  }
  gst_object_ref_sink(*element);
  for (const Setting& setting : settings) {
    note_problem(problems, setting.place, path.empty() ? setting.name : path + "." + setting.name,
                 set_property(*element, setting.name, setting.value));
  }
  gst_object_unref(*element);
}

std::vector<RunModel> check_stages(const PipelineSpec& spec, const std::optional<RunModel>& first,
                                   const std::string& models, ConfigProblems& problems) {
  Known known;
  known.complete = first.has_value();
  if (first) {
    const auto labels = std::ranges::find(spec.infer, "labels", &Setting::name);
    known.add(first->manifest, labels != spec.infer.end() ? &*labels : nullptr);
    known.has_pictures = leaves_pictures(first->manifest);
  }
  std::vector<RunModel> found;
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const StageSpec& stage = spec.stages[i];
    const std::string path = str_format("stages[{}]", i);
    check_settings("peninfer", stage.settings, path, problems);
    check_classes(stage, known, path, problems);
    if (stage.model.empty()) {
      known.complete = false;
      continue;
    }
    auto model = find_run_model(stage.model, models);
    if (!model) {
      add_problem(problems, stage.model_place, path + ".model", model.error().message());
      known.complete = false;
      continue;
    }
    const Manifest& manifest = model->manifest;
    check_roi(spec, stage, manifest, known, path, problems);
    known.add(manifest, stage.setting("labels"));
    if (stage.roi == StageRoi::kObjects) {
      known.looked_at_objects = true;
    } else {
      known.has_pictures = known.has_pictures || leaves_pictures(manifest);
    }
    found.push_back(std::move(*model));
  }
  return found;
}

std::vector<std::string> object_labels(const PipelineSpec& spec, const RunModel& first,
                                       const std::vector<RunModel>& stages) {
  Known known;
  const auto labels = std::ranges::find(spec.infer, "labels", &Setting::name);
  known.add(first.manifest, labels != spec.infer.end() ? &*labels : nullptr);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    known.add(stages[i].manifest, spec.stages[i].setting("labels"));
  }
  return known.names_all ? std::move(known.labels) : std::vector<std::string>();
}

ElementSettings stage_settings(const PipelineSpec& spec, std::size_t number, const RunModel& model,
                               const EngineFlags& engine) {
  const StageSpec& stage = spec.stages[number];
  ElementSettings settings{"peninfer",
                           str_format("{}{}] {}", kStageName, number, model.manifest.name)};
  settings.properties = {{"model", model.path.string()},
                         {"model-instance", SharedModel::instance_of_stage(number)},
                         {"device", spec.device},
                         {"roi", std::string(name_of(stage.roi))}};
  for (const Setting& setting : stage.settings) {
    settings.properties.emplace_back(setting.name, setting.value);
  }
  if (!engine.library.empty()) settings.properties.emplace_back("engine-library", engine.library);
  if (!engine.provider_library.empty()) {
    settings.properties.emplace_back("provider-library", engine.provider_library);
  }
  return settings;
}

std::string plan_of(const StageSpec& stage, const Manifest& manifest) {
  std::string line = str_format("stage {} ({}): looks at ", manifest.name, manifest.task);
  switch (stage.roi) {
    case StageRoi::kFullFrame:
      return line + "the whole frame";
    case StageRoi::kTiles: {
      const Setting* tiles = stage.setting("tiles");
      return line + (tiles != nullptr ? tiles->value : "2x2") + " tiles";
    }
    case StageRoi::kObjects:
      break;
  }
  const Setting* classes = stage.setting("object-classes");
  line += "each " + (classes != nullptr ? classes->value : std::string("object"));
  if (const Setting* again = stage.setting("reinfer-interval")) {
    line += again->value == "0" ? ", once" : str_format(", again after {} frames", again->value);
  }
  return line;
}

}  // namespace penstock
