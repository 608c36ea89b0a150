// SPDX-License-Identifier: Apache-2.0
//
// penstock run: from flags to RunOptions, and from RunOutcome to messages and an exit code.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/number_flags.h"
#include "apps/penstock/pipeline_command.h"
#include "apps/penstock/run_flags.h"
#include "apps/penstock/run_model.h"
#include "apps/penstock/stop_signals.h"
#include "gst/register.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/device_id.h"
#include "penstock/model/manifest.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/pipeline/output_flag.h"
#include "penstock/pipeline/run_job.h"
#include "penstock/pipeline/source_address.h"
#include "penstock/track/zone_labels.h"

namespace penstock {
namespace {

int terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 79;
  return size.ws_col - 1;
}

bool counts_places(const RunFlags& flags) { return !flags.zones.empty() || !flags.lines.empty(); }

ElementSettings zone_counter(const RunFlags& flags) {
  // What is counted is on the frames, and nobody reads the messages.
  return {"penzone",
          "zones",
          {{"zones", flags.zones}, {"lines", flags.lines}, {"post-messages", "false"}}};
}

/// Flags about objects and the model, or each other.
Result<void> check_finders(const RunFlags& flags, const Manifest& manifest) {
  if (flags.read_tensors && manifest.task != "raw") {
    return fail(ErrorKind::kInvalidArgument,
                str_format("--read-tensors is for models of task 'raw'; '{}' is of task '{}'",
                           manifest.name, manifest.task));
  }
  if (flags.track && subject_of(manifest.task) != Subject::kObjects) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("--track is for models that find objects; '{}' is of task '{}'",
                           manifest.name, manifest.task));
  }
  if (counts_places(flags) && !flags.track) {
    return fail(ErrorKind::kInvalidArgument,
                "--zones and --lines count objects with ids: say --track, too");
  }
  return {};
}

int run_one(const RunFlags& flags) {
  RunOptions options;
  for (const std::string& output : flags.outputs) {
    if (auto taken = take_output(output, options); !taken) {
      return report(taken.error(), kExitUsage);
    }
  }
  auto device = parse_device_id(flags.device);
  if (!device) return report(device.error(), kExitUsage);
  auto model = find_run_model(flags.model, flags.models);
  if (!model) return report(model.error());
  const Manifest* const manifest = &model->manifest;
  auto source = parse_source(flags.sources.front());
  if (!source) return report(source.error(), exit_code(source.error().kind()));

  options.source = std::move(*source);
  options.device = flags.device;
  options.policy = flags.policy;
  options.threshold = flags.threshold;
  options.iou_threshold = flags.iou_threshold;
  if (flags.workers) options.properties.emplace_back("workers", std::to_string(*flags.workers));
  if (flags.read_tensors) options.properties.emplace_back("read-tensors", "true");
  if (flags.track) options.behind.push_back({"pentrack", "track"});
  if (counts_places(flags)) options.behind.push_back(zone_counter(flags));
  options.convert = flags.convert;
  set_model(options, *model, flags.engine);
  const bool quiet = flags.quiet;
  options.on_plan = [quiet](const std::string& line) {
    if (!quiet) std::fprintf(stderr, "%s\n", printable(line).c_str());
  };

  if (auto fits = check_finders(flags, *manifest); !fits) return report(fits.error(), kExitUsage);
  if (!options.video.empty() && subject_of(manifest->task) == Subject::kNumbers) {
    options.on_plan(
        str_format("plan: the video output shows nothing of a model of task '{}'", manifest->task));
  }

  gst_init(nullptr, nullptr);
  if (!gst::register_elements(nullptr)) {
    return report(Error(ErrorKind::kInternal, "GStreamer refuses penstock's elements"),
                  kExitSoftware);
  }
  if (counts_places(flags)) {
    if (auto counter = try_element(zone_counter(flags)); !counter) {
      return report(counter.error(), kExitUsage);
    }
    if (auto known = check_place_labels(flags.zones, flags.lines, manifest->labels); !known) {
      return report(known.error(), kExitUsage);
    }
  }
  auto signals = StopSignals::install();
  if (!signals) return report(signals.error(), exit_code(signals.error().kind()));
  options.stop_fd = signals->fd();

  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  Progress progress(
      [](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stderr);
        std::fflush(stderr);
      },
      terminal, terminal_width());
  if (!quiet) options.progress = &progress;

  // The table would end up in the middle of it.
  const bool stdout_taken =
      std::ranges::any_of(std::array{options.video, options.json, options.report},
                          [](const auto& p) { return standard_descriptor_of(p) == STDOUT_FILENO; });
  const RunOutcome outcome = run(options);
  int code = run_exit_code(outcome.error, outcome.failed, outcome.stopped);
  if (!quiet && outcome.summary.frames > 0) {
    code = show_table(to_table(outcome.summary), stdout_taken, code);
  }
  if (outcome.error) return report(*outcome.error, code);
  if (outcome.stopped) {
    std::fprintf(stderr,
                 "penstock: stopped by a signal after %llu frames; the outputs are closed\n",
                 static_cast<unsigned long long>(outcome.summary.frames));
  }
  return code;
}

/// Of what people mean as a source and write as the pipeline.
bool is_video_name(const std::string& name) {
  if (is_rtsp_address(name) || name.starts_with("file://") || name.starts_with("/dev/video")) {
    return true;
  }
  constexpr std::array kEndings{".mkv", ".mp4", ".mov", ".avi",  ".webm", ".m4v",  ".ts",
                                ".mts", ".mpg", ".flv", ".h264", ".jpg",  ".jpeg", ".png"};
  std::string ending = std::filesystem::path(name).extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::contains(kEndings, std::string_view(ending));
}

int run_with(const CLI::App& run, const RunFlags& flags) {
  if (auto enough = check_descriptors(); !enough) return report(enough.error());
  if (!flags.pipeline.empty()) {
    if (flags.sources.empty() && is_video_name(flags.pipeline)) {
      return report(Error(ErrorKind::kInvalidArgument,
                          str_format("'{0}' is a video, not a pipeline's YAML file: "
                                     "penstock run --source {0} --model NAME",
                                     without_password(flags.pipeline))),
                    kExitUsage);
    }
    // A flag beside the file would have to win or to lose, and nobody could tell which.
    for (const CLI::Option* option : run.get_options()) {
      const std::string name = option->get_name();
      const bool is_about_this_run = name == "pipeline" || name == "--models" ||
                                     name == "--engine-library" || name == "--provider-library" ||
                                     name == "--quiet";
      if (is_about_this_run || option->count() == 0) continue;
      return report(Error(ErrorKind::kInvalidArgument,
                          str_format("{}: with a pipeline the file says this", name)),
                    kExitUsage);
    }
    return run_pipeline_file(flags);
  }
  if (flags.sources.empty() || flags.model.empty()) {
    return report(
        Error(ErrorKind::kInvalidArgument, "give --source and --model, or a pipeline's YAML file"),
        kExitUsage);
  }
  return flags.sources.size() == 1 ? run_one(flags) : run_several(flags);
}

}  // namespace

Command add_run(CLI::App& app) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* run = app.add_subcommand("run", "Analyse video files and RTSP streams");
  run->add_option("pipeline", flags->pipeline,
                  "A YAML file that says it all, instead of the flags (docs/pipelines.md)");
  run->add_option("--source", flags->sources, "A video file or rtsp:// address; may be repeated")
      ->allow_extra_args(false);
  run->add_option("--model", flags->model, "A model's name, or its manifest.json or folder");
  run->add_option("--models", flags->models, "Folder of prepared models");
  run->add_option("--device", flags->device, "Where frames lie and models run")
      ->capture_default_str();
  run->add_option("--policy", flags->policy,
                  "throughput: one worker a core; latency: one worker on all cores")
      ->check(CLI::IsMember({"throughput", "latency"}))
      ->capture_default_str();
  run->add_option("--threshold", flags->threshold, "Least confidence (default: the model's)")
      ->check(finite_number(0, 1));
  run->add_option("--iou-threshold", flags->iou_threshold,
                  "Overlap from which the weaker of two boxes goes (default: the model's)")
      ->check(finite_number(0, 1));
  run->add_option("--workers", flags->workers, "Inference workers (default: by policy and cores)")
      ->check(CLI::Range(1, 256));
  add_engine_flags(*run, flags->engine);
  run->add_option(
      "--out", flags->outputs,
      "video=FILE.mp4, json=FILE.jsonl or report=FILE.html; given once for each; '-' for "
      "json or report: stdout");
  run->add_flag("--track", flags->track, "Give objects ids that last from frame to frame");
  run->add_option("--zones", flags->zones,
                  "Count tracked objects in 'NAME: X,Y X,Y X,Y ... @ LABEL; ...', X and Y parts of "
                  "the picture; with --track");
  run->add_option("--lines", flags->lines,
                  "Count those that cross 'NAME: X,Y X,Y @ LABEL; ...'; with --track");
  run->add_flag("--convert", flags->convert,
                "Allow a convert stage (a copy of every frame) for 8-bit formats other than 4:2:0");
  run->add_flag("--read-tensors", flags->read_tensors,
                "Write the outputs of a raw model into the JSON, at most 256 KiB a frame");
  run->add_flag("--quiet", flags->quiet, "Only errors; no plan, progress or table");
  return [flags, run] { return run_with(*run, *flags); };
}

}  // namespace penstock
