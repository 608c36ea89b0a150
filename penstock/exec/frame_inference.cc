// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/frame_inference.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"
#include "penstock/exec/frame_runner.h"
#include "penstock/exec/half_outputs.h"

namespace penstock {
namespace {

/// How many slots the batch that goes into the model has at least. kInvalidArgument when it can't
/// take `batch_size`.
Result<std::size_t> minimum_batch(const Session& session, const Manifest& manifest,
                                  int batch_size) {
  const auto found =
      std::ranges::find(session.inputs(), manifest.preprocess.input_name, &TensorSpec::name);
  if (found == session.inputs().end()) {
    return fail(ErrorKind::kUnsupported, str_format("none of its inputs is the picture '{}'",
                                                    manifest.preprocess.input_name));
  }
  const TensorSpec& input = *found;
  if (input.dims.empty()) {
    return fail(ErrorKind::kUnsupported,
                str_format("its input '{}' is a scalar, not a batch of images", input.name));
  }
  const Dimension& batch = input.dims.front();
  if (batch_size > batch.maximum) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("batch size {} is more than the {} that its input '{}' takes; use at "
                           "most {}, or a model with a larger or dynamic batch",
                           batch_size, batch.maximum, input.name, batch.maximum));
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(batch.minimum, 1));
}

class OpenedFrameInference final : public FrameInference {
 public:
  OpenedFrameInference(FrameStage stage, int workers)
      : stage_(std::move(stage)), workers_(workers) {}

  Result<void> start(const InferenceOptions& options) {
    for (int worker = 0; worker < workers_; ++worker) {
      caches_.push_back(
          std::make_shared<PreprocessorCache>(stage_.device, stage_.manifest.preprocess));
    }
    const ExecutorOptions executor_options{
        .workers = workers_,
        .queue_depth = options.queue_depth,
        .source_share = options.source_share,
        .batch_size = options.batch_size,
        .max_wait = options.max_wait,
        .clock = stage_.clock,
        // A stream has up to a batch of lanes.
        .max_sources = ExecutorOptions{}.max_sources *
                       static_cast<std::size_t>(std::max(options.batch_size, 1)),
        .on_forgotten = [this](const SourceId& source) {
          for (const auto& cache : caches_) cache->drop(source);
        }};
    auto executor = SharedBatchExecutor::create(
        executor_options, [&](int worker) -> Result<std::unique_ptr<BatchRunner>> {
          auto decoder = create_decoder(with_widened_outputs(stage_.manifest), options.decode);
          if (!decoder) return std::unexpected(std::move(decoder).error());
          return make_frame_runner(stage_, caches_[static_cast<std::size_t>(worker)],
                                   std::move(*decoder));
        });
    if (!executor) return std::unexpected(std::move(executor).error());
    executor_ = std::move(*executor);
    return {};
  }

  SharedBatchExecutor& executor() override { return *executor_; }
  const Manifest& manifest() const override { return stage_.manifest; }
  int workers() const override { return workers_; }
  void interrupt() override { stage_.session->interrupt(); }
  std::uint64_t preprocessors() const override {
    std::uint64_t made = 0;
    for (const auto& cache : caches_) made += cache->made();
    return made;
  }

 private:
  const FrameStage stage_;
  const int workers_;
  std::vector<std::shared_ptr<PreprocessorCache>> caches_;
  // Last, so that its workers end first.
  std::unique_ptr<SharedBatchExecutor> executor_;
};

}  // namespace

Result<std::unique_ptr<FrameInference>> FrameInference::open(DevicePtr device,
                                                             const Manifest& manifest,
                                                             const InferenceOptions& options) {
  if (device == nullptr) return fail(ErrorKind::kInvalidArgument, "inference needs a device");
  const auto where = [&](const Error& error) {
    return std::unexpected(error.context(
        str_format("opening model '{}' on {}", manifest.name, to_string(device->id()))));
  };
  if (options.workers < 0) {
    return where({ErrorKind::kInvalidArgument, "the number of workers is negative"});
  }
  const int cores = usable_cores();
  const int workers = options.workers > 0                     ? options.workers
                      : options.policy == Policy::kThroughput ? cores
                                                              : 1;
  const int threads = options.policy == Policy::kThroughput ? 1 : std::max(1, cores / workers);
  const SessionOptions wanted{.threads = threads,
                              .concurrent_runs = workers,
                              .engine_library = options.engine_library,
                              .provider_library = options.provider_library};
  auto session = options.open_session ? options.open_session(device, manifest, wanted)
                                      : open_session(device, manifest, wanted);
  if (!session) return where(session.error());
  const auto min_batch = minimum_batch(**session, manifest, options.batch_size);
  if (!min_batch) return where(min_batch.error());
  const auto most_slots =
      std::max(*min_batch, static_cast<std::size_t>(std::max(options.batch_size, 1)));
  auto constants = ConstantInputs::create((*session)->inputs(), manifest, most_slots);
  if (!constants) return where(constants.error());

  auto inference = std::make_unique<OpenedFrameInference>(
      FrameStage{.device = device,
                 .manifest = manifest,
                 .session = std::move(*session),
                 .min_batch = *min_batch,
                 .constants = *std::move(constants),
                 .clock = options.clock != nullptr ? options.clock : &Clock::system()},
      workers);
  if (auto started = inference->start(options); !started) return where(started.error());
  return inference;
}

}  // namespace penstock
