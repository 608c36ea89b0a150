// SPDX-License-Identifier: Apache-2.0
#include "gst/tile_task.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gst/joined_analysis.h"
#include "gst/penanalysis_meta.h"
#include "penstock/task/tile_merge.h"

namespace penstock::gst {
namespace {

class TileTask final : public FrameTask {
 public:
  TileTask(std::vector<RectI> tiles, const DecodeOptions& merge, const std::string& model,
           const FrameResult& about)
      : tiles_(std::move(tiles)),
        merge_(merge),
        model_(model),
        analysis_(std::make_shared<Analysis>()) {
    analysis_->result = about;
  }

  std::vector<std::optional<RectI>> regions() const override {
    return {tiles_.begin(), tiles_.end()};
  }

  void conclude(std::vector<InferenceResult> results) override {
    std::vector<TileFindings> found;
    StageTimes& slowest = analysis_->times;
    for (std::size_t i = 0; i < results.size(); ++i) {
      found.push_back({.tile = tiles_[i], .objects = std::move(results[i].objects)});
      const StageTimes& times = results[i].times;
      slowest.queue = std::max(slowest.queue, times.queue);
      slowest.preprocess = std::max(slowest.preprocess, times.preprocess);
      slowest.infer = std::max(slowest.infer, times.infer);
      slowest.decode = std::max(slowest.decode, times.decode);
    }
    FrameResult& result = analysis_->result;
    result.objects = merge_tiles(found, result.width, result.height, merge_);
  }

  Result<void> attach(GstBuffer* frame) override {
    return attach_findings(frame, std::move(analysis_), model_);
  }

 private:
  const std::vector<RectI> tiles_;
  const DecodeOptions merge_;
  const std::string model_;
  std::shared_ptr<Analysis> analysis_;
};

class TileTasks final : public FrameTasks {
 public:
  TileTasks(const TileGrid& grid, const DecodeOptions& merge, std::string model)
      : grid_(grid), merge_(merge), model_(std::move(model)) {}

  Result<std::unique_ptr<FrameTask>> begin(GstBuffer*, const FrameResult& about) override {
    auto tiles = plan_tiles(grid_, about.width, about.height);
    if (!tiles) return std::unexpected(std::move(tiles).error());
    return std::make_unique<TileTask>(*std::move(tiles), merge_, model_, about);
  }

 private:
  const TileGrid grid_;
  const DecodeOptions merge_;
  const std::string model_;
};

}  // namespace

std::shared_ptr<FrameTasks> tile_tasks(const TileGrid& grid, const DecodeOptions& merge,
                                       const std::string& model) {
  return std::make_shared<TileTasks>(grid, merge, model);
}

}  // namespace penstock::gst
