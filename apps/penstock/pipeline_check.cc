// SPDX-License-Identifier: Apache-2.0
#include "apps/penstock/pipeline_check.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "apps/penstock/stage_check.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/device_id.h"
#include "penstock/pipeline/control_socket.h"
#include "penstock/pipeline/element_settings.h"
#include "penstock/pipeline/output_files.h"
#include "penstock/pipeline/pipeline_files.h"
#include "penstock/pipeline/pipeline_source.h"
#include "penstock/track/zone_labels.h"

namespace penstock {
namespace {

void check_tracker(const PipelineSpec& spec, ConfigProblems& problems) {
  if (!spec.track) return;
  const std::size_t before = problems.size();
  check_settings("pentrack", spec.tracker, "track", problems);
  if (problems.size() != before) return;
  ElementSettings track{"pentrack", "track"};
  for (const Setting& setting : spec.tracker) {
    track.properties.emplace_back(setting.name, setting.value);
  }
  note_problem(problems, spec.track_place, "track", try_element(track));
}

/// As peninfer does it when it has the model.
void check_labels(const PipelineSpec& spec, const Manifest& manifest, ConfigProblems& problems) {
  const auto labels = std::ranges::find(spec.infer, "labels", &Setting::name);
  if (labels == spec.infer.end() || manifest.labels.empty()) return;
  const auto count = std::size_t(std::ranges::count(labels->value, ',')) + 1;
  if (count == manifest.labels.size()) return;
  add_problem(problems, labels->place, "labels",
              str_format("names {} classes, the model has {}", count, manifest.labels.size()));
}

void check_source_at(const PipelineSource& source, const std::string& path,
                     ConfigProblems& problems) {
  // Without an address, what is wrong with it is told already.
  if (source.kind == PipelineSourceKind::kTest || !source.address.empty()) {
    note_problem(problems, source.place, path, check_source(source));
  }
  for (const auto& [key, text] :
       {std::pair{"zones", &source.zones}, std::pair{"lines", &source.lines}}) {
    if (text->empty()) continue;
    note_problem(problems, source.place, path + "." + key,
                 try_element({"penzone", "zones", {{key, *text}}}));
  }
}

/// Only of places that can be read: what is wrong with others is told already.
void check_place_labels_at(const PipelineSource& source, const std::vector<std::string>& labels,
                           const std::string& path, ConfigProblems& problems) {
  if (check_place_labels(source.zones, "", {})) {
    note_problem(problems, source.place, path + ".zones",
                 check_place_labels(source.zones, "", labels));
  }
  if (check_place_labels("", source.lines, {})) {
    note_problem(problems, source.place, path + ".lines",
                 check_place_labels("", source.lines, labels));
  }
}

void check_model(const PipelineSpec& spec, const RunModel& model, ConfigProblems& problems) {
  check_labels(spec, model.manifest, problems);
  if (subject_of(model.manifest.task) == Subject::kObjects) return;
  if (spec.track) {
    add_problem(problems, spec.track_place, "track",
                str_format("is for models that find objects; '{}' is of task '{}'",
                           model.manifest.name, model.manifest.task));
  }
}

std::string plan_of(const PipelineSource& source, const PipelineSpec& spec) {
  std::string line = str_format("source {}: {}", source.name, shown_address(source));
  if (source.loop) line += ", begun again at its end";
  if (source.reconnect) {
    line += str_format(", dialled again when it is lost or gives no frame for {:g} s",
                       std::chrono::duration<double>(spec.stall_after).count());
  }
  if (!source.zones.empty()) line += "; zones " + source.zones;
  if (!source.lines.empty()) line += "; lines " + source.lines;
  return line;
}

}  // namespace

std::optional<CheckedPipeline> check_pipeline(PipelineSpec spec, const std::string& models,
                                              ConfigProblems& problems) {
  if (auto device = parse_device_id(spec.device); !device) {
    add_problem(problems, spec.device_place, "device", device.error().message());
  }
  std::optional<RunModel> model;
  if (!spec.model.empty()) {
    auto found = find_run_model(spec.model, models);
    if (found) {
      model = std::move(*found);
      check_model(spec, *model, problems);
    } else {
      add_problem(problems, spec.model_place, "model", found.error().message());
    }
  }
  check_settings("peninfer", spec.infer, "", problems);
  std::vector<RunModel> stages = check_stages(spec, model, models, problems);
  check_tracker(spec, problems);
  for (std::size_t i = 0; i < spec.sources.size(); ++i) {
    check_source_at(spec.sources[i], str_format("sources[{}]", i), problems);
  }
  if (model && stages.size() == spec.stages.size()) {
    const std::vector<std::string> labels = object_labels(spec, *model, stages);
    for (std::size_t i = 0; i < spec.sources.size(); ++i) {
      check_place_labels_at(spec.sources[i], labels, str_format("sources[{}]", i), problems);
    }
  }
  std::ranges::stable_sort(problems, {}, [](const ConfigProblem& problem) {
    return std::pair(problem.place.line, problem.place.column);
  });
  if (!problems.empty() || !model) return std::nullopt;
  return CheckedPipeline{std::move(spec), std::move(*model), std::move(stages)};
}

void check_files(const PipelineSpec& spec, const RunOptions& model, ConfigProblems& problems) {
  std::vector<PipelineFile> files = files_of(spec, model);
  for (const PipelineSource& source : spec.sources) {
    for (PipelineFile& file : files_of(spec, source)) files.push_back(std::move(file));
  }
  const std::vector<FileConflict> conflicts = find_conflicts(files);
  for (const FileConflict& conflict : conflicts) {
    add_problem(problems, conflict.written.place, conflict.written.where, conflict.what);
  }
  for (const PipelineFile& file : files) {
    if (std::ranges::any_of(conflicts, [&file](const FileConflict& conflict) {
          return conflict.written.path == file.path;
        })) {
      continue;
    }
    if (file.use == PipelineFile::Use::kWritten) {
      note_problem(problems, file.place, file.where, check_creatable(file.path));
    } else if (file.use == PipelineFile::Use::kSocket) {
      note_problem(problems, file.place, file.where, check_listenable(file.path));
    }
  }
  std::ranges::stable_sort(problems, {}, [](const ConfigProblem& problem) {
    return std::pair(problem.place.line, problem.place.column);
  });
}

std::vector<std::string> plan_of(const CheckedPipeline& pipeline) {
  const PipelineSpec& spec = pipeline.spec;
  std::vector<std::string> lines{str_format("model {} ({}) on {}, one for all sources",
                                            pipeline.model.manifest.name,
                                            pipeline.model.manifest.task, spec.device)};
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    lines.push_back(plan_of(spec.stages[i], pipeline.stages[i].manifest));
  }
  for (const PipelineSource& source : spec.sources) lines.push_back(plan_of(source, spec));
  if (spec.track) lines.emplace_back("objects get track ids, a tracker for each source");
  if (spec.convert) {
    lines.emplace_back("other 8-bit formats than 4:2:0 are converted, a copy of every frame");
  }
  if (!spec.json.empty()) lines.push_back(str_format("frames to {}", spec.json.string()));
  if (!spec.events.empty()) lines.push_back(str_format("zone events to {}", spec.events.string()));
  if (!spec.report.empty()) lines.push_back(str_format("report to {}", spec.report.string()));
  if (!spec.video.empty()) lines.push_back(str_format("video to {}", spec.video));
  if (!spec.control.empty()) {
    lines.push_back(str_format("control at {}{}", spec.control.string(),
                               spec.stay_open ? ", open until it is stopped" : ""));
  }
  return lines;
}

}  // namespace penstock
