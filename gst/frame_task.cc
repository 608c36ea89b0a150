// SPDX-License-Identifier: Apache-2.0
#include "gst/frame_task.h"

#include <utility>

#include "gst/analysis_relations.h"
#include "gst/penanalysis_meta.h"

namespace penstock::gst {
namespace {

class WholeFrame final : public FrameTask {
 public:
  explicit WholeFrame(const FrameResult& about) : analysis_(std::make_shared<Analysis>()) {
    analysis_->result = about;
  }

  std::vector<std::optional<RectI>> regions() const override { return {std::nullopt}; }

  void conclude(std::vector<InferenceResult> results) override {
    InferenceResult& result = results.front();
    static_cast<Findings&>(analysis_->result) = static_cast<Findings&&>(result);
    analysis_->device = std::move(result.device);
    analysis_->times = result.times;
  }

  Result<void> attach(GstBuffer* frame) override {
    PENSTOCK_TRY(attach_relations(frame, analysis_->result));
    attach_analysis(frame, std::move(analysis_));
    return {};
  }

 private:
  std::shared_ptr<Analysis> analysis_;
};

class WholeFrames final : public FrameTasks {
 public:
  Result<std::unique_ptr<FrameTask>> begin(GstBuffer*, const FrameResult& about) override {
    return std::make_unique<WholeFrame>(about);
  }
};

}  // namespace

std::shared_ptr<FrameTasks> whole_frame_tasks() { return std::make_shared<WholeFrames>(); }

}  // namespace penstock::gst
