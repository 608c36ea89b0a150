// SPDX-License-Identifier: Apache-2.0
//
// penstock run with a pipeline or several sources, and penstock check.
#include "apps/penstock/pipeline_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/pipeline_check.h"
#include "apps/penstock/run_model.h"
#include "apps/penstock/stage_check.h"
#include "apps/penstock/stop_signals.h"
#include "gst/register.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/printable.h"
#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/pipeline/pipeline_job.h"
#include "penstock/pipeline/pipeline_schema.h"
#include "penstock/pipeline/pipeline_source.h"
#include "penstock/track/zone_labels.h"

namespace penstock {
namespace {

Result<void> start_gstreamer() {
  gst_init(nullptr, nullptr);
  if (gst::register_elements(nullptr)) return {};
  return fail(ErrorKind::kInternal, "GStreamer refuses penstock's elements");
}

int report_problems(const ConfigProblems& problems, const std::string& file) {
  for (const ConfigProblem& problem : problems) {
    std::fprintf(stderr, "%s\n", printable(to_string(problem, file)).c_str());
  }
  return kExitData;
}

/// A pipeline of a file; an exit code when it can't be had.
Result<CheckedPipeline, int> load_pipeline(const std::string& file, const std::string& models) {
  auto text = read_config_file(file);
  if (!text) return std::unexpected(report(text.error()));
  ConfigProblems problems;
  auto spec = read_pipeline(*text, problems);
  if (!spec) return std::unexpected(report_problems(problems, file));
  spec->file = file;
  auto checked = check_pipeline(std::move(*spec), models, problems);
  if (!checked) return std::unexpected(report_problems(problems, file));
  return std::move(*checked);
}

/// For the jitter of cameras that are dialled again: no secret, and different in each process.
RandomPart make_random() {
  struct Shared {
    std::mutex mutex;
    std::mt19937_64 engine{std::random_device()()};
  };
  return [shared = std::make_shared<Shared>()] {
    const std::lock_guard lock(shared->mutex);
    return std::uniform_real_distribution<double>(0, 1)(shared->engine);
  };
}

std::function<RunOptions()> session_options(const CheckedPipeline& checked,
                                            const EngineFlags& engine) {
  return [spec = checked.spec, model = checked.model, stages = checked.stages, engine] {
    RunOptions options;
    options.device = spec.device;
    options.threshold = spec.threshold;
    for (const Setting& setting : spec.infer) {
      options.properties.emplace_back(setting.name, setting.value);
    }
    options.properties.emplace_back("model-instance", SharedModel::kInstance);
    set_model(options, model, engine);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      options.stages.push_back(stage_settings(spec, i, stages[i], engine));
      add_model_files(options, stages[i]);
    }
    return options;
  };
}

std::string ledger_table(const PipelineOutcome& outcome) {
  const double frames = double(std::max<std::uint64_t>(outcome.frames(), 1));
  std::string out = "memory ledger, from peninfer's sink pads\n";
  for (const CopyLedger::Row& row : outcome.ledger) {
    if (row.copy_class == CopyClass::kUpstream) continue;
    str_append(out, "  {:<9} {:<24} {:>8} {:>8.2f} a frame\n", to_string(row.copy_class), row.site,
               row.count, double(row.count) / frames);
  }
  return out;
}

int finish(const PipelineOutcome& outcome, const PipelineSpec& spec, bool quiet) {
  int code = run_exit_code(outcome.error, outcome.failed, outcome.stopped);
  if (!quiet && !outcome.sources.empty()) {
    const bool stdout_taken = standard_descriptor_of(spec.json) == STDOUT_FILENO ||
                              standard_descriptor_of(spec.report) == STDOUT_FILENO ||
                              standard_descriptor_of(spec.events) == STDOUT_FILENO;
    code = show_table(to_table(outcome.sources) + ledger_table(outcome) +
                          to_table(outcome.outside, outcome.frames()),
                      stdout_taken, code);
  }
  if (outcome.error) return report(*outcome.error, code);
  if (outcome.stopped) {
    std::fprintf(stderr,
                 "penstock: stopped by a signal after %llu frames; the outputs are closed\n",
                 static_cast<unsigned long long>(outcome.frames()));
  }
  return code;
}

int run_checked(const CheckedPipeline& checked, const RunFlags& flags) {
  auto signals = StopSignals::install();
  if (!signals) return report(signals.error());
  PipelineOptions options;
  options.spec = checked.spec;
  options.make_options = session_options(checked, flags.engine);
  options.random = make_random();
  options.check_places = [labels = object_labels(checked.spec, checked.model, checked.stages)](
                             const PipelineSource& source) {
    return check_place_labels(source.zones, source.lines, labels);
  };
  options.stop_fd = signals->fd();
  options.say = [quiet = flags.quiet](const std::string& line) {
    if (!quiet) std::fprintf(stderr, "%s\n", printable(line).c_str());
  };
  for (const std::string& line : plan_of(checked)) options.say("plan: " + line);
  PipelineJob job(std::move(options));
  return finish(job.execute(), checked.spec, flags.quiet);
}

/// The flags as a spec; sources are called source-0, source-1, ...
Result<PipelineSpec> spec_of(const RunFlags& flags) {
  PipelineSpec spec;
  spec.model = flags.model;
  spec.device = flags.device;
  spec.infer.push_back({"policy", flags.policy, {}});
  spec.threshold = flags.threshold;
  if (flags.iou_threshold) {
    spec.infer.push_back({"iou-threshold", str_format("{}", *flags.iou_threshold), {}});
  }
  if (flags.workers) spec.infer.push_back({"workers", std::to_string(*flags.workers), {}});
  if (flags.read_tensors) spec.infer.push_back({"read-tensors", "true", {}});
  spec.track = flags.track;
  if ((!flags.zones.empty() || !flags.lines.empty()) && !flags.track) {
    return fail(ErrorKind::kInvalidArgument,
                "--zones and --lines count objects with ids: say --track, too");
  }
  spec.convert = flags.convert;
  for (const std::string& output : flags.outputs) {
    if (output.starts_with("json=") && spec.json.empty()) {
      spec.json = output_of(output.substr(5));
    } else if (output.starts_with("report=") && spec.report.empty()) {
      spec.report = output_of(output.substr(7));
    } else if (output.starts_with("video=") && spec.video.empty()) {
      spec.video = output.substr(6);
    } else {
      return fail(
          ErrorKind::kInvalidArgument,
          str_format("--out {}: several sources have one json=FILE.jsonl, one report=FILE.html "
                     "and one video=NAME-{{source}}.mp4",
                     output));
    }
  }
  if (!spec.video.empty() && spec.video.find(kSourceMark) == std::string::npos) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("--out video={}: must hold {{source}}, each source has a file of its "
                           "own",
                           spec.video));
  }
  if (flags.sources.size() > kMaxPipelineSources) {
    return fail(ErrorKind::kInvalidArgument, str_format("{} sources; at most {} are taken",
                                                        flags.sources.size(), kMaxPipelineSources));
  }
  for (const std::string& text : flags.sources) {
    PipelineSource source;
    source.name = str_format("source-{}", spec.sources.size());
    source.address = text;
    source.zones = flags.zones;
    source.lines = flags.lines;
    if (is_rtsp_address(text)) {
      source.kind = PipelineSourceKind::kRtsp;
      source.reconnect = true;
    }
    spec.sources.push_back(std::move(source));
  }
  return spec;
}

int check_with(const std::string& file, const std::string& models) {
  if (auto started = start_gstreamer(); !started) return report(started.error());
  auto checked = load_pipeline(file, models);
  if (!checked) return checked.error();
  // A run finds these where it opens them, with the exit codes of its outputs.
  ConfigProblems problems;
  check_files(checked->spec, session_options(*checked, {})(), problems);
  if (!problems.empty()) return report_problems(problems, file);
  for (const std::string& line : plan_of(*checked)) say(line);
  return kExitOk;
}

}  // namespace

int run_pipeline_file(const RunFlags& flags) {
  if (auto started = start_gstreamer(); !started) return report(started.error());
  auto checked = load_pipeline(flags.pipeline, flags.models);
  return checked ? run_checked(*checked, flags) : checked.error();
}

int run_several(const RunFlags& flags) {
  if (auto started = start_gstreamer(); !started) return report(started.error());
  auto spec = spec_of(flags);
  if (!spec) return report(spec.error(), kExitUsage);
  // As in a run of one source, what is wrong has the exit code of its kind.
  if (auto model = find_run_model(flags.model, flags.models); !model) return report(model.error());
  for (const PipelineSource& source : spec->sources) {
    if (auto there = check_source(source); !there) return report(there.error());
  }
  ConfigProblems problems;
  auto checked = check_pipeline(std::move(*spec), flags.models, problems);
  if (checked) return run_checked(*checked, flags);
  for (const ConfigProblem& problem : problems) {
    report(Error(ErrorKind::kInvalidArgument, to_string(problem, "")), kExitUsage);
  }
  return kExitUsage;
}

Command add_check(CLI::App& app) {
  struct CheckFlags {
    std::string file, models;
  };
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* check =
      app.add_subcommand("check", "Say what a pipeline would do, or all that is wrong with it");
  check->add_option("pipeline", flags->file, "A YAML file (docs/pipelines.md)")->required();
  check->add_option("--models", flags->models, "Folder of prepared models");
  return [flags] { return check_with(flags->file, flags->models); };
}

}  // namespace penstock
