// SPDX-License-Identifier: Apache-2.0
//
// penstock run: from flags to RunOptions, and from RunOutcome to messages and an exit code.
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/engine_flags.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "apps/penstock/number_flags.h"
#include "apps/penstock/stop_signals.h"
#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/printable.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/device_id.h"
#include "penstock/model/manifest.h"
#include "penstock/pipeline/output_file.h"
#include "penstock/pipeline/output_flag.h"
#include "penstock/pipeline/run_job.h"

namespace penstock {
namespace {

struct Flags {
  std::string source;
  std::string model;
  std::string models;
  std::string device = "cpu";
  std::string policy = "throughput";
  std::optional<float> threshold;
  std::optional<float> iou_threshold;
  std::optional<int> workers;
  EngineFlags engine;
  std::vector<std::string> outputs;
  bool track = false;
  bool convert = false;
  bool read_tensors = false;
  bool quiet = false;
};

/// What a source holds is data, whether malformed or of a kind that is not analysed; one that can't
/// be read, or stops, is no failed output.
int exit_code_of_source(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUnsupported:
    case ErrorKind::kInvalidArgument:
      return kExitData;
    case ErrorKind::kIo:
    case ErrorKind::kDeadline:
      return kExitUnavailable;
    default:
      return exit_code(kind);
  }
}

int exit_code_of(const RunOutcome& outcome) {
  if (outcome.error) {
    switch (outcome.failed) {
      case RunPart::kOutputCreate:
        return outcome.error->kind() == ErrorKind::kInvalidArgument ? kExitUsage
                                                                    : kExitCannotCreate;
      case RunPart::kOutputWrite:
        return kExitIo;
      case RunPart::kSource:
        return exit_code_of_source(outcome.error->kind());
      case RunPart::kModel:
        // The command line was read before; what does not fit is the manifest.
        return outcome.error->kind() == ErrorKind::kInvalidArgument
                   ? kExitData
                   : exit_code(outcome.error->kind());
      default:
        return exit_code(outcome.error->kind());
    }
  }
  return outcome.stopped ? 128 + StopSignals::received() : kExitOk;
}

std::optional<CopyClass> parse_copy_class(std::string_view text) {
  for (int i = 0; i < kCopyClassCount; ++i) {
    if (text == to_string(CopyClass(i))) return CopyClass(i);
  }
  return std::nullopt;
}

/// The rows of peninfer's `stats` property.
std::vector<CopyLedger::Row> read_ledger(GstElement* infer) {
  std::vector<CopyLedger::Row> ledger;
  GstStructure* stats = nullptr;
  g_object_get(infer, "stats", &stats, nullptr);
  if (stats == nullptr) return ledger;
  const GValue* rows = gst_structure_get_value(stats, "ledger");
  const guint size = rows != nullptr ? gst_value_list_get_size(rows) : 0;
  for (guint i = 0; i < size; ++i) {
    const GstStructure* row = gst_value_get_structure(gst_value_list_get_value(rows, i));
    const gchar* name = gst_structure_get_string(row, "class");
    const gchar* site = gst_structure_get_string(row, "site");
    guint64 count = 0;
    guint64 bytes = 0;
    gst_structure_get_uint64(row, "count", &count);
    gst_structure_get_uint64(row, "bytes", &bytes);
    const auto copy_class = parse_copy_class(name != nullptr ? name : "");
    if (copy_class) ledger.push_back({*copy_class, site != nullptr ? site : "", count, bytes});
  }
  gst_structure_free(stats);
  return ledger;
}

std::optional<FrameReading> read_frame(GstBuffer* buffer) {
  const gst::Analysis* analysis = gst::read_analysis(buffer);
  if (analysis == nullptr) return std::nullopt;
  return FrameReading{&analysis->result, &analysis->times};
}

/// With fewer, libraries crash that never expect to be refused one.
constexpr rlim_t kLeastDescriptors = 32;

Result<void> check_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kLeastDescriptors) return {};
  return fail(ErrorKind::kExhausted,
              str_format("only {} files may be open at once (ulimit -n); a run needs {}",
                         limit.rlim_cur, kLeastDescriptors));
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 79;
  return size.ws_col - 1;
}

int run_with(const Flags& flags) {
  if (auto enough = check_descriptors(); !enough) {
    return report(enough.error(), exit_code(enough.error().kind()));
  }
  RunOptions options;
  for (const std::string& output : flags.outputs) {
    if (auto taken = take_output(output, options); !taken) {
      return report(taken.error(), kExitUsage);
    }
  }
  auto device = parse_device_id(flags.device);
  if (!device) return report(device.error(), kExitUsage);
  auto manifest_path = find_named_model(flags.model, models_folder(flags.models));
  if (!manifest_path) return report(manifest_path.error(), exit_code(manifest_path.error().kind()));
  auto manifest = load_manifest(*manifest_path);
  if (!manifest) return report(manifest.error(), exit_code(manifest.error().kind()));
  auto source = parse_source(flags.source);
  if (!source) return report(source.error(), exit_code(source.error().kind()));

  options.source = std::move(*source);
  options.model = *manifest_path;
  options.model_files.push_back(manifest->artefact);
  for (const std::string& data : manifest->data) {
    options.model_files.push_back(manifest->folder / data);
  }
  options.model_name = manifest->name;
  options.task = manifest->task;
  options.licence = manifest->licence;
  options.device = flags.device;
  options.policy = flags.policy;
  options.threshold = flags.threshold.value_or(manifest->threshold);
  options.iou_threshold = flags.iou_threshold;
  if (flags.workers) options.properties.emplace_back("workers", std::to_string(*flags.workers));
  if (!flags.engine.library.empty()) {
    options.properties.emplace_back("engine-library", flags.engine.library);
  }
  if (!flags.engine.provider_library.empty()) {
    options.properties.emplace_back("provider-library", flags.engine.provider_library);
  }
  if (flags.read_tensors) options.properties.emplace_back("read-tensors", "true");
  options.track = flags.track;
  options.convert = flags.convert;
  options.read_frame = read_frame;
  options.read_ledger = read_ledger;
  const bool quiet = flags.quiet;
  options.on_plan = [quiet](const std::string& line) {
    if (!quiet) std::fprintf(stderr, "%s\n", printable(line).c_str());
  };

  if (flags.read_tensors && manifest->task != "raw") {
    return report(
        Error(ErrorKind::kInvalidArgument,
              str_format("--read-tensors is for models of task 'raw'; '{}' is of task '{}'",
                         manifest->name, manifest->task)),
        kExitUsage);
  }
  if (flags.track && subject_of(manifest->task) != Subject::kObjects) {
    return report(Error(ErrorKind::kInvalidArgument,
                        str_format("--track is for models that find objects; '{}' is of task '{}'",
                                   manifest->name, manifest->task)),
                  kExitUsage);
  }
  if (!options.video.empty() && subject_of(manifest->task) != Subject::kObjects) {
    options.on_plan(
        str_format("plan: the video output shows boxes only, and a model of task '{}' "
                   "finds none",
                   manifest->task));
  }

  gst_init(nullptr, nullptr);
  if (!gst::register_elements(nullptr)) {
    return report(Error(ErrorKind::kInternal, "GStreamer refuses penstock's elements"),
                  kExitSoftware);
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
  if (!quiet && outcome.summary.frames > 0) {
    std::FILE* const to = stdout_taken ? stderr : stdout;
    std::fputs(to_table(outcome.summary).c_str(), to);
    std::fflush(to);
  }
  const int code = exit_code_of(outcome);
  if (outcome.error) return report(*outcome.error, code);
  if (outcome.stopped) {
    std::fprintf(stderr,
                 "penstock: stopped by a signal after %llu frames; the outputs are closed\n",
                 static_cast<unsigned long long>(outcome.summary.frames));
  }
  return code;
}

}  // namespace

Command add_run(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* run = app.add_subcommand("run", "Analyse a video file or RTSP stream");
  run->add_option("--source", flags->source, "A video file or rtsp:// address")->required();
  run->add_option("--model", flags->model, "A model's name, or its manifest.json or folder")
      ->required();
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
  run->add_flag("--convert", flags->convert,
                "Allow a convert stage (a copy of every frame) for 8-bit formats other than 4:2:0");
  run->add_flag("--read-tensors", flags->read_tensors,
                "Write the outputs of a raw model into the JSON, at most 256 KiB a frame");
  run->add_flag("--quiet", flags->quiet, "Only errors; no plan, progress or table");
  return [flags] { return run_with(*flags); };
}

}  // namespace penstock
