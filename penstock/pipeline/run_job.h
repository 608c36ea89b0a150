// SPDX-License-Identifier: Apache-2.0
//
// RunJob is the main job: decode a source, let peninfer analyse it, write what was asked for.
//
//   RunOptions options{.source = *parse_source("a.mp4"), .model = manifest_path};
//   options.json = "a.jsonl";
//   options.read_frame = ...;                    // how the application reads peninfer's metadata
//   RunOutcome outcome = run(options);
//
// Elements are reached by name, so this room needs neither the plugin's headers nor its library;
// the application registers them and hands in the two readers. Every way the run ends (end of
// stream, stop request, error) drains the frames already accepted and closes the outputs, so that
// what was written is valid.
#pragma once

#include <gst/gst.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/base/file_ops.h"
#include "penstock/observe/latency_book.h"
#include "penstock/pipeline/element_settings.h"
#include "penstock/pipeline/progress.h"
#include "penstock/pipeline/run_summary.h"
#include "penstock/pipeline/source.h"

namespace penstock {

/// What is told of a frame; valid during the call that gets it.
struct FrameReading {
  const FrameResult* result = nullptr;
  /// What peninfer took; null for a frame that it did not look at, whose objects a tracker
  /// supposes.
  const StageTimes* times = nullptr;
};

struct RunOptions {
  Source source;
  std::string name;                                ///< The source's in figures; empty: its text.
  std::filesystem::path model;                     ///< manifest.json
  std::vector<std::filesystem::path> model_files;  ///< What else the model consists of.
  std::string model_name;                          ///< For the report.
  std::string task = "detection";                  ///< The model's; says what the summary is about.
  std::string licence;                             ///< For the report.
  std::string device = "cpu";
  std::string policy = "throughput";
  std::optional<float> threshold;  ///< Unset: the manifest's.
  std::optional<float> iou_threshold;
  /// More properties of peninfer, as text ("workers" = "1").
  std::vector<std::pair<std::string, std::string>> properties;
  /// Elements behind peninfer, one after the other: pentrack, second stages, penzone.
  std::vector<ElementSettings> behind;
  /// The further models of a pipeline, as SharedModel opens them and SourceRunner puts them among
  /// `behind`. A run by itself does not look at them.
  std::vector<ElementSettings> stages;
  bool convert = false;  ///< Allow a convert stage for 8-bit formats other than 4:2:0.

  std::filesystem::path video;   ///< MP4 with boxes; empty: none.
  std::filesystem::path json;    ///< JSON lines; empty: none.
  std::filesystem::path report;  ///< HTML, or JSON if it ends in .json; empty: none.

  /// Nothing for a frame of which nothing is told, as there are where peninfer has an `interval`.
  std::function<std::optional<FrameReading>(GstBuffer*)> read_frame;
  /// The rows of peninfer's copy ledger, asked for at the end of the run.
  std::function<std::vector<CopyLedger::Row>(GstElement*)> read_ledger;
  /// Called with every frame's result on a streaming thread.
  std::function<void(const FrameResult&)> on_frame;
  /// Called there for every frame of which nothing is told, and which has a number all the same.
  std::function<void()> on_pass;
  /// Lines that say what the run is about to do ("plan: ...").
  std::function<void(const std::string&)> on_plan;
  /// The pipeline is built and in NULL; here what it shares with others is put on it.
  std::function<void(GstElement*)> on_built;
  /// Element messages, on the thread that called run().
  std::function<void(const GstStructure*)> on_message;
  /// The source fails when no frame came for as long, a camera also when nothing came since it was
  /// dialled; zero: never.
  Nanoseconds stall_after{};
  /// Count the decoder's copies, which one run of a process can at a time.
  bool count_upstream = true;
  /// Keeps how long frames stay in each stage, over several runs; null: over this one.
  std::shared_ptr<LatencyBook> latency;
  Progress* progress = nullptr;  ///< Must outlive the run.
  /// Becomes readable when the run is to stop early; -1: never.
  int stop_fd = -1;
  FileOps* files = nullptr;  ///< Default: FileOps::system().
  Clock* clock = nullptr;    ///< Default: Clock::system().
};

/// Which part of a run failed; decides between exit codes of one ErrorKind.
enum class RunPart { kNone, kSource, kModel, kOutputCreate, kOutputWrite, kPipeline };

struct RunOutcome {
  RunSummary summary;  ///< Of the frames that were written, also after an error.
  std::optional<Error> error;
  RunPart failed = RunPart::kNone;
  bool stopped = false;  ///< By stop_fd.
};

/// Blocks until the run has ended. gst_init() and the registration of peninfer come before.
RunOutcome run(const RunOptions& options);

}  // namespace penstock
