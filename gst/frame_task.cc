// SPDX-License-Identifier: Apache-2.0
#include "gst/frame_task.h"

#include <string>
#include <utility>

#include "gst/joined_analysis.h"
#include "gst/penanalysis_meta.h"

namespace penstock::gst {
namespace {

class WholeFrame final : public FrameTask {
 public:
  WholeFrame(const std::string& model, const FrameResult& about)
      : model_(model), analysis_(std::make_shared<Analysis>()) {
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
    return attach_findings(frame, std::move(analysis_), model_);
  }

 private:
  const std::string model_;
  std::shared_ptr<Analysis> analysis_;
};

class WholeFrames final : public FrameTasks {
 public:
  explicit WholeFrames(std::string model) : model_(std::move(model)) {}

  Result<std::unique_ptr<FrameTask>> begin(GstBuffer*, const FrameResult& about) override {
    return std::make_unique<WholeFrame>(model_, about);
  }

 private:
  const std::string model_;
};

}  // namespace

std::shared_ptr<FrameTasks> whole_frame_tasks(const std::string& model) {
  return std::make_shared<WholeFrames>(model);
}

}  // namespace penstock::gst
