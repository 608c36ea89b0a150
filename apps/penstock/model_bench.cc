// SPDX-License-Identifier: Apache-2.0
//
// penstock model bench NAME: latency and throughput of a prepared model on generated frames, by
// policy and batch size, through FrameInference as `run` uses it. A request's latency is its time
// from submission to its records; requests are in flight as many as keep the workers busy
// (throughput), or one batch at a time (latency).
#include <algorithm>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/penstock/commands.h"
#include "apps/penstock/engine_flags.h"
#include "apps/penstock/messages.h"
#include "apps/penstock/model_names.h"
#include "apps/penstock/number_flags.h"
#include "penstock/base/clock.h"
#include "penstock/base/exit_code.h"
#include "penstock/base/json_writer.h"
#include "penstock/base/str_format.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/observe/latency.h"

namespace penstock {
namespace {

constexpr int kMaxBenchBatch = 64;
constexpr std::size_t kMaxInFlight = 1024;

struct Flags {
  std::string model, models, policy = "both";
  EngineFlags engine;
  std::vector<int> batches;
  double seconds = 3;
  int width = 1280, height = 720, workers = 0;
  bool json = false;
};

struct Row {
  std::string policy;
  int batch = 1, workers = 0;
  std::uint64_t frames = 0;
  double seconds = 0, rate = 0;
  double median = 0;                             ///< Milliseconds from submission to records.
  std::optional<double> p95{}, p99{};            ///< Where runs enough lie in that tail.
  double preprocess = 0, infer = 0, decode = 0;  ///< Medians.
};

/// A picture with structure at every scale, which is no easier to scale than a street.
FramePtr generated_frame(int width, int height) {
  const std::size_t luma = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  auto samples = std::make_shared<std::vector<std::byte>>(luma * 3 / 2);
  std::uint32_t state = 1;
  for (std::byte& sample : *samples) {
    state = state * 1664525u + 1013904223u;
    sample = static_cast<std::byte>(64 + (state >> 25));
  }
  const StoragePtr storage = wrap_host_memory(std::span(*samples), samples);
  auto frame = std::make_shared<VideoFrame>();
  frame->width = width;
  frame->height = height;
  const std::size_t half = static_cast<std::size_t>(width) / 2;
  frame->planes = {Plane{storage, 0, static_cast<std::size_t>(width)}, Plane{storage, luma, half},
                   Plane{storage, luma + luma / 4, half}};
  return frame;
}

double milliseconds(const LatencyHistogram& times, double quantile) {
  return static_cast<double>(times.percentile(quantile).count()) / 1e6;
}

/// What is measured of one run.
struct Times {
  LatencyHistogram total, preprocess, infer, decode;
  void add(const StageTimes& times) {
    total.record(times.queue + times.preprocess + times.infer + times.decode);
    preprocess.record(times.preprocess);
    infer.record(times.infer);
    decode.record(times.decode);
  }
};

class Run {
 public:
  Run(FrameInference& inference, FramePtr frame, std::size_t in_flight)
      : inference_(inference), frame_(std::move(frame)), in_flight_(in_flight) {}

  /// Requests for `seconds`, and then what is in flight; frames done.
  Result<std::uint64_t> go(double seconds, Times* times) {
    const Clock& clock = Clock::system();
    const auto end = clock.now() + Nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
    std::uint64_t done = 0;
    while (clock.now() < end || done == 0) {
      while (waiting_.size() < in_flight_) PENSTOCK_TRY(submit());
      PENSTOCK_TRY(take(times, done));
    }
    while (!waiting_.empty()) PENSTOCK_TRY(take(times, done));
    return done;
  }

 private:
  Result<void> submit() {
    // A batch has at most one request of a source.
    const SourceId source{str_format("bench {}", next_++ % in_flight_)};
    auto future = inference_.executor().submit(
        {.frame = frame_, .roi = {}, .source = source, .generation = 0}, WhenFull::kWait);
    if (!future) return std::unexpected(std::move(future).error());
    waiting_.push_back(*std::move(future));
    return {};
  }
  Result<void> take(Times* times, std::uint64_t& done) {
    auto result = waiting_.front().get();
    waiting_.pop_front();
    if (!result) return std::unexpected(std::move(result).error());
    if (times != nullptr) times->add(result->times);
    ++done;
    return {};
  }

  FrameInference& inference_;
  const FramePtr frame_;
  const std::size_t in_flight_;
  std::size_t next_ = 0;
  std::deque<SharedBatchExecutor::Future> waiting_;
};

/// Of fewer runs, the percentile would be the slowest one under another name.
std::optional<double> tail(const LatencyHistogram& times, std::uint64_t runs, double part) {
  constexpr double kLeastInTail = 2;
  if (static_cast<double>(runs) * (1 - part) < kLeastInTail) return std::nullopt;
  return milliseconds(times, part);
}

Result<Row> measure(const Manifest& manifest, const Flags& flags, Policy policy, int batch) {
  auto device = open_device(DeviceId{});
  if (!device) return std::unexpected(device.error());
  auto inference =
      FrameInference::open(*device, manifest,
                           {.policy = policy,
                            .workers = policy == Policy::kThroughput ? flags.workers : 0,
                            .queue_depth = kMaxInFlight,
                            .batch_size = batch,
                            .max_wait = batch > 1 ? Nanoseconds(50'000'000) : Nanoseconds(),
                            .decode = decode_options_of(manifest),
                            .engine_library = flags.engine.library,
                            .provider_library = flags.engine.provider_library});
  if (!inference) return std::unexpected(std::move(inference).error());
  const int workers = (*inference)->workers();
  const auto size = static_cast<std::size_t>(batch);
  const std::size_t in_flight =
      policy == Policy::kLatency
          ? size
          : std::min(2 * size * static_cast<std::size_t>(workers), kMaxInFlight);
  Run run(**inference, generated_frame(flags.width, flags.height), in_flight);
  // The first runs allocate; they are not counted.
  if (auto warm = run.go(flags.seconds / 10, nullptr); !warm) return std::unexpected(warm.error());
  Times times;
  const auto start = Clock::system().now();
  const auto frames = run.go(flags.seconds, &times);
  if (!frames) return std::unexpected(frames.error());
  const double seconds =
      static_cast<double>(Nanoseconds(Clock::system().now() - start).count()) / 1e9;
  return Row{.policy = policy == Policy::kLatency ? "latency" : "throughput",
             .batch = batch,
             .workers = workers,
             .frames = *frames,
             .seconds = seconds,
             .rate = static_cast<double>(*frames) / seconds,
             .median = milliseconds(times.total, 0.5),
             .p95 = tail(times.total, *frames, 0.95),
             .p99 = tail(times.total, *frames, 0.99),
             .preprocess = milliseconds(times.preprocess, 0.5),
             .infer = milliseconds(times.infer, 0.5),
             .decode = milliseconds(times.decode, 0.5)};
}

/// Those asked for, or 1, 4 and 8 as far as the model takes them.
std::vector<int> batches_of(const Flags& flags, const Manifest& manifest) {
  if (!flags.batches.empty()) return flags.batches;
  // The manifest's inputs may come in any order; a constant's first dimension need not be the
  // batch.
  const auto input =
      std::ranges::find(manifest.inputs, manifest.preprocess.input_name, &TensorSpec::name);
  const bool has_batch = input != manifest.inputs.end() && !input->dims.empty();
  const std::int64_t least = has_batch ? input->dims[0].minimum : 1;
  const std::int64_t most = has_batch ? input->dims[0].maximum : 1;
  std::vector<int> batches;
  for (const int batch : {1, 4, 8}) {
    if (batch >= least && batch <= most) batches.push_back(batch);
  }
  if (batches.empty())
    batches.push_back(static_cast<int>(std::min<std::int64_t>(least, kMaxBenchBatch)));
  return batches;
}

std::string conditions(const Flags& flags) {
  return str_format(
      "generated I420 frames of {}x{} on cpu, each already in memory: preprocess, infer and "
      "decode, "
      "no video decoding; times from submission to records",
      flags.width, flags.height);
}

void print_table(const Flags& flags, const std::string& model, const std::vector<Row>& rows) {
  say(str_format("{}: {}", model, conditions(flags)));
  say("");
  std::printf("%-10s %5s %7s %8s %9s %9s %9s %9s   %s\n", "policy", "batch", "workers", "frames",
              "frames/s", "median ms", "p95 ms", "p99 ms", "preprocess + infer + decode ms");
  const auto text = [](const std::optional<double>& value) {
    return value ? str_format("{:.2f}", *value) : std::string("-");
  };
  bool is_short = false;
  for (const Row& row : rows) {
    std::printf(
        "%-10s %5d %7d %8llu %9.1f %9.2f %9s %9s   %.2f + %.2f + %.2f\n", row.policy.c_str(),
        row.batch, row.workers, static_cast<unsigned long long>(row.frames), row.rate, row.median,
        text(row.p95).c_str(), text(row.p99).c_str(), row.preprocess, row.infer, row.decode);
    is_short = is_short || !row.p99;
  }
  if (is_short) say("-: too few frames to tell (p95 from 40, p99 from 200); see --seconds");
}

void print_json(const Flags& flags, const std::string& model, const std::vector<Row>& rows) {
  JsonWriter out;
  out.open('{');
  out.key("model").string(model);
  out.key("measured").string(conditions(flags));
  out.key("runs").open('[');
  for (const Row& row : rows) {
    out.open('{');
    out.key("policy").string(row.policy);
    out.key("batch").number(row.batch);
    out.key("workers").number(row.workers);
    out.key("frames").number(row.frames);
    out.key("seconds").number(row.seconds);
    out.key("frames_per_second").number(row.rate);
    out.key("median_ms").number(row.median);
    if (row.p95) out.key("p95_ms").number(*row.p95);
    if (row.p99) out.key("p99_ms").number(*row.p99);
    out.key("preprocess_ms").number(row.preprocess);
    out.key("infer_ms").number(row.infer);
    out.key("decode_ms").number(row.decode);
    out.close('}');
  }
  out.close(']');
  out.close('}');
  std::printf("%s", out.take().c_str());
}

int bench(const Flags& flags) {
  auto path = find_named_model(flags.model, models_folder(flags.models));
  if (!path) return report(path.error());
  auto manifest = load_manifest(*path);
  if (!manifest) return report(manifest.error());
  std::vector<Row> rows;
  for (const Policy policy : {Policy::kLatency, Policy::kThroughput}) {
    const bool wanted =
        flags.policy == "both" || (flags.policy == "latency") == (policy == Policy::kLatency);
    if (!wanted) continue;
    for (const int batch : batches_of(flags, *manifest)) {
      auto row = measure(*manifest, flags, policy, batch);
      if (!row) return report(row.error());
      rows.push_back(*std::move(row));
    }
  }
  flags.json ? print_json(flags, manifest->name, rows) : print_table(flags, manifest->name, rows);
  return kExitOk;
}

}  // namespace

Command add_model_bench(CLI::App& model) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = model.add_subcommand(
      "bench", "Measure a prepared model's latency and throughput on generated frames");
  command->add_option("model", flags->model, "Name, folder or manifest")->required();
  command->add_option("--seconds", flags->seconds, "Of each measurement")
      ->check(finite_number(0.1, 600))
      ->capture_default_str();
  command->add_option("--policy", flags->policy, "What to measure")
      ->check(CLI::IsMember({"latency", "throughput", "both"}))
      ->capture_default_str();
  command
      ->add_option(
          "--batch", flags->batches,
          "Batch size, may be given several times; default: 1, 4 and 8 as far as the model "
          "takes them")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMaxBenchBatch));
  command->add_option("--workers", flags->workers, "With throughput; default: one a core")
      ->check(CLI::Range(0, 1024));
  const auto even = [](std::string& text) {
    return text.empty() || (text.back() - '0') % 2 == 0 ? std::string() : "must be even";
  };
  command->add_option("--width", flags->width, "Of the frames")
      ->check(CLI::Range(2, 32766))
      ->check(CLI::Validator(even, "EVEN"))
      ->capture_default_str();
  command->add_option("--height", flags->height, "Of the frames")
      ->check(CLI::Range(2, 32766))
      ->check(CLI::Validator(even, "EVEN"))
      ->capture_default_str();
  command->add_option("--models", flags->models, "Folder of prepared models");
  add_engine_flags(*command, flags->engine);
  command->add_flag("--json", flags->json, "As JSON");
  return [flags] { return bench(*flags); };
}

}  // namespace penstock
