// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/frame_runner.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/exec/batch_assembly.h"
#include "penstock/exec/half_outputs.h"

namespace penstock {
namespace {

/// When a fence passed, as far as the host can tell.
class Stamp {
 public:
  Stamp(const Fence& fence, Clock& clock)
      : at_(std::make_shared<std::atomic<Nanoseconds::rep>>(0)) {
    fence.on_passed([at = at_, &clock] {
      // Set the lowest bit, so that no time looks like none.
      at->store(clock.now().time_since_epoch().count() | 1);
      at->notify_all();
    });
  }
  /// Only for a fence that has passed: its callbacks run right after its waiters wake.
  TimePoint at() const {
    at_->wait(0);
    return TimePoint(Nanoseconds(at_->load()));
  }

 private:
  std::shared_ptr<std::atomic<Nanoseconds::rep>> at_;
};

Nanoseconds between(TimePoint from, TimePoint to) {
  return std::max(to - from, Nanoseconds::zero());
}

class FrameRunner final : public BatchRunner {
 public:
  FrameRunner(const FrameStage& stage, std::shared_ptr<PreprocessorCache> preprocessors,
              std::unique_ptr<OutputDecoder> decoder)
      : stage_(stage),
        preprocessors_(std::move(preprocessors)),
        decoder_(std::move(decoder)),
        constants_(stage.constants) {}

  std::vector<Result<InferenceResult>> run(std::span<const InferenceRequest> batch) override {
    std::vector<Result<InferenceResult>> results(batch.size());
    std::vector<Item> items = preprocess(batch, results);
    if (!items.empty()) infer(items, results);
    items.clear();
    // On the way of success all have passed; after an error the device may still be at it.
    for (const Fence& fence : in_flight_) static_cast<void>(fence.wait());
    for (const Stamp& stamp : stamps_) static_cast<void>(stamp.at());  // They refer to the clock.
    in_flight_.clear();
    stamps_.clear();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (!results[i]) results[i].error().context(describe(batch[i]));
    }
    return results;
  }

 private:
  struct Item {
    std::size_t index;  // In the executor's batch.
    PreprocessedFrame frame;
    TimePoint begun;
    Stamp preprocessed;
  };

  std::vector<Item> preprocess(std::span<const InferenceRequest> batch,
                               std::vector<Result<InferenceResult>>& results) {
    std::vector<Item> items;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const TimePoint begun = stage_.clock->now();
      auto frame = preprocess(batch[i]);
      if (!frame) {
        results[i] = std::unexpected(std::move(frame).error());
        continue;
      }
      const Fence ready = frame->tensor.ready;
      items.push_back({i, std::move(*frame), begun, stamp(ready)});
      in_flight_.push_back(ready);
    }
    return items;
  }

  Result<PreprocessedFrame> preprocess(const InferenceRequest& request) {
    if (request.frame == nullptr) {
      return fail(ErrorKind::kInvalidArgument, "the request has no frame");
    }
    auto preprocessor = preprocessors_->get({.name = request.source.name});  // One for all lanes.
    if (!preprocessor) return std::unexpected(std::move(preprocessor).error());
    return (*preprocessor)->run(request.frame, request.roi);
  }

  void infer(std::span<const Item> items, std::vector<Result<InferenceResult>>& results) {
    auto outputs = run_session(items);
    if (!outputs) {
      for (const Item& item : items) results[item.index] = std::unexpected(outputs.error());
      return;
    }
    for (const Tensor& output : *outputs) in_flight_.push_back(output.ready);
    // All outputs of a run carry its one fence.
    const Stamp inferred = stamp(outputs->empty() ? Fence() : outputs->front().ready);
    if (stage_.manifest.task != "raw") {
      if (auto widened = widen_outputs(*stage_.device, *outputs, in_flight_); !widened) {
        for (const Item& item : items) results[item.index] = std::unexpected(widened.error());
        return;
      }
    }
    TimePoint decode_begun = TimePoint::min();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      auto decoded_item =
          decoder_->decode(*stage_.device, *outputs, static_cast<int>(i), &item.frame.letterbox);
      const TimePoint decoded = stage_.clock->now();
      if (!decoded_item) {
        results[item.index] = std::unexpected(std::move(decoded_item).error());
        continue;
      }
      const TimePoint run_ended = inferred.at();
      StageTimes& times = results[item.index]->times;
      times.preprocess = between(item.begun, item.preprocessed.at());
      times.infer = between(items.back().preprocessed.at(), run_ended);
      times.decode = between(std::max(decode_begun, run_ended), decoded);
      InferenceResult& result = *results[item.index];
      result.device = std::move(decoded_item->device);
      result.device.letterbox = item.frame.letterbox;
      result.unusable = std::move(decoded_item->unusable);
      static_cast<Findings&>(result) =
          to_findings(*std::move(decoded_item), item.frame.letterbox, stage_.manifest.labels);
      decode_begun = stage_.clock->now();
    }
  }

  Result<std::vector<Tensor>> run_session(std::span<const Item> items) {
    std::vector<Tensor> tensors;
    for (const Item& item : items) tensors.push_back(item.frame.tensor);
    const std::size_t slots = std::max(items.size(), stage_.min_batch);
    auto picture =
        assemble_batch(*stage_.device, tensors, slots, stage_.manifest.preprocess, in_flight_);
    if (!picture) {
      return std::unexpected(picture.error().context(
          str_format("assembling a batch of {} in {} slots", items.size(), slots)));
    }
    const auto constants = constants_.get(*stage_.device, slots);
    if (!constants) return std::unexpected(constants.error().context("making constant inputs"));
    std::vector<Tensor> inputs(constants->begin(), constants->end());
    inputs.push_back(*std::move(picture));
    return stage_.session->run(inputs);
  }

  Stamp stamp(const Fence& fence) {
    stamps_.emplace_back(fence, *stage_.clock);
    return stamps_.back();
  }

  std::string describe(const InferenceRequest& request) const {
    const bool timed = request.frame != nullptr && request.frame->pts_ns >= 0;
    return str_format("inference of frame {} of source '{}' by model '{}' on {}",
                      timed ? str_format("at {} ns", request.frame->pts_ns) : "without timestamp",
                      request.source.name, stage_.manifest.name, to_string(stage_.device->id()));
  }

  const FrameStage& stage_;
  const std::shared_ptr<PreprocessorCache> preprocessors_;
  const std::unique_ptr<OutputDecoder> decoder_;
  ConstantInputs constants_;
  std::vector<Fence> in_flight_;
  std::vector<Stamp> stamps_;
};

}  // namespace

std::unique_ptr<BatchRunner> make_frame_runner(const FrameStage& stage,
                                               std::shared_ptr<PreprocessorCache> preprocessors,
                                               std::unique_ptr<OutputDecoder> decoder) {
  return std::make_unique<FrameRunner>(stage, std::move(preprocessors), std::move(decoder));
}

}  // namespace penstock
