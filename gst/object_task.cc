// SPDX-License-Identifier: Apache-2.0
#include "gst/object_task.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/joined_analysis.h"
#include "gst/object_records.h"
#include "gst/penanalysis_meta.h"

namespace penstock::gst {
namespace {

bool is_small(const PictureFindings& said) {
  std::size_t values = said.embedding.size();
  for (const TensorRecord& tensor : said.tensors) values += tensor.values.size();
  return values <= kKeptValues;
}

/// What was last said of each tracked object. Used by the source pad's task alone.
struct Said {
  std::uint64_t frame = 0;  ///< In which frame of the stream.
  Attributes attributes;
};
using SaidTable = TrackTable<std::optional<Said>>;

/// What is added to one object.
struct Addition {
  std::size_t object = 0;
  Attributes attributes{};
  std::vector<Keypoint> keypoints{};
};

class ObjectTask final : public FrameTask {
 public:
  ObjectTask(std::shared_ptr<const ObjectOptions> options, std::shared_ptr<SaidTable> said,
             FrameResult about, const FrameObjects& objects, ObjectChoice choice)
      : options_(std::move(options)),
        said_(std::move(said)),
        about_(std::move(about)),
        tracks_(objects.tracks),
        choice_(std::move(choice)) {}

  std::vector<std::optional<RectI>> regions() const override {
    std::vector<std::optional<RectI>> regions;
    for (const auto& looked_at : choice_.looked_at) regions.emplace_back(looked_at.region);
    return regions;
  }

  void conclude(std::vector<InferenceResult> results) override {
    said_->advance();
    for (std::size_t i = 0; i < results.size(); ++i) {
      take(choice_.looked_at[i].object, std::move(results[i]));
    }
    for (const std::size_t object : choice_.kept) recall(object);
    // The surest of all, told by the object that they are in.
    std::ranges::stable_sort(found_, std::ranges::greater{}, &Detection::confidence);
    if (found_.size() > options_->filter.max_objects) found_.resize(options_->filter.max_objects);
    std::ranges::stable_sort(found_, {}, &Detection::parent);
  }

  Result<void> attach(GstBuffer* frame) override {
    const FrameObjects now = read_objects(frame);
    if (now.records.size() != tracks_.size()) {
      return fail(ErrorKind::kCorrupt, "the frame's objects were changed while it waited");
    }
    PENSTOCK_TRY(attach_records(now));
    attach_full(frame, now);
    return {};
  }

 private:
  void take(std::size_t object, InferenceResult result) {
    Addition addition{.object = object};
    static_cast<PictureFindings&>(addition.attributes) = static_cast<PictureFindings&&>(result);
    addition.attributes.model = options_->model;
    if (options_->is_pose) {
      if (!result.objects.empty()) addition.keypoints = std::move(result.objects[0].keypoints);
    } else {
      for (Detection& found : result.objects) {
        found.parent = static_cast<int>(object);
        found_.push_back(std::move(found));
      }
    }
    if (leaves_something(result.device)) {
      device_.push_back({.object = object, .model = options_->model, .device = result.device});
    }
    slowest_.preprocess = std::max(slowest_.preprocess, result.times.preprocess);
    slowest_.infer = std::max(slowest_.infer, result.times.infer);
    slowest_.decode = std::max(slowest_.decode, result.times.decode);
    slowest_.queue = std::max(slowest_.queue, result.times.queue);
    if (const auto track = tracks_[object]) {
      auto& kept = said_->see(*track);
      kept.reset();
      if (!says_nothing(addition.attributes) && is_small(addition.attributes)) {
        kept = Said{.frame = about_.frame, .attributes = addition.attributes};
      }
    }
    additions_.push_back(std::move(addition));
  }

  void recall(std::size_t object) {
    const auto track = tracks_[object];
    if (!track) return;
    const std::optional<Said>& said = said_->see(*track);
    if (!said) return;
    Addition addition{.object = object, .attributes = said->attributes};
    addition.attributes.age = about_.frame - said->frame;
    additions_.push_back(std::move(addition));
  }

  Result<void> attach_records(const FrameObjects& now) const {
    for (const Addition& addition : additions_) {
      const GstAnalyticsODMtd& record = now.records[addition.object];
      PENSTOCK_TRY(attach_to_object(record.meta, about_,
                                    {.object = record.id,
                                     .attributes = &addition.attributes,
                                     .keypoints = addition.keypoints}));
    }
    for (const Detection& found : found_) {
      const auto& record = now.records[static_cast<std::size_t>(found.parent)];
      PENSTOCK_TRY(attach_part(record.meta, about_, record.id, found));
    }
    return {};
  }

  /// In full precision, in a copy of what the first stage said: others may share it.
  void attach_full(GstBuffer* frame, const FrameObjects& now) {
    auto analysis = now.analysis != nullptr ? std::make_shared<Analysis>(*now.analysis)
                                            : std::make_shared<Analysis>();
    if (now.analysis == nullptr) {
      analysis->result = about_;
      analysis->result.objects = now.objects;
      analysis->times = slowest_;
    }
    std::vector<Detection>& objects = analysis->result.objects;
    for (Addition& addition : additions_) {
      Detection& object = objects[addition.object];
      if (!addition.keypoints.empty()) object.keypoints = std::move(addition.keypoints);
      if (!says_nothing(addition.attributes)) {
        object.attributes.push_back(std::move(addition.attributes));
      }
    }
    std::ranges::move(found_, std::back_inserter(objects));
    std::ranges::move(device_, std::back_inserter(analysis->object_device));
    if (now.analysis != nullptr) {
      replace_analysis(frame, std::move(analysis));
    } else {
      attach_analysis(frame, std::move(analysis));
    }
  }

  const std::shared_ptr<const ObjectOptions> options_;
  const std::shared_ptr<SaidTable> said_;
  const FrameResult about_;
  const std::vector<std::optional<guint64>> tracks_;  ///< By object.
  const ObjectChoice choice_;
  std::vector<Addition> additions_;
  std::vector<Detection> found_;
  std::vector<ObjectDeviceFindings> device_;
  StageTimes slowest_;
};

class ObjectTasks final : public FrameTasks {
 public:
  ObjectTasks(const ObjectOptions& options, std::shared_ptr<RegionCounts> counts)
      : options_(std::make_shared<const ObjectOptions>(options)),
        counts_(std::move(counts)),
        schedule_(options.filter) {}

  Result<std::unique_ptr<FrameTask>> begin(GstBuffer* frame, const FrameResult& about) override {
    const FrameObjects objects = read_objects(frame);
    ObjectChoice choice = schedule_.choose(objects, about.frame, about.width, about.height);
    counts_->inferred += choice.looked_at.size();
    counts_->kept += choice.not_due;
    counts_->left_out += choice.left_out;
    if (choice.looked_at.empty() && choice.kept.empty()) return nullptr;
    return std::make_unique<ObjectTask>(options_, said_, about, objects, std::move(choice));
  }

 private:
  const std::shared_ptr<const ObjectOptions> options_;
  const std::shared_ptr<RegionCounts> counts_;
  ObjectSchedule schedule_;  ///< Sink pad's thread.
  const std::shared_ptr<SaidTable> said_ = std::make_shared<SaidTable>();
};

}  // namespace

std::shared_ptr<FrameTasks> object_tasks(const ObjectOptions& options,
                                         std::shared_ptr<RegionCounts> counts) {
  return std::make_shared<ObjectTasks>(options, std::move(counts));
}

}  // namespace penstock::gst
