// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/box_family.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_extras.h"
#include "penstock/task/detection_job.h"
#include "penstock/task/rotated_nms.h"

namespace penstock {
namespace {

class BoxDecoder final : public OutputDecoder {
 public:
  BoxDecoder(const BoxFamily& family, const BoxModel& model, const DecodeOptions& options)
      : family_(family), model_(model), options_(options) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* /*letterbox*/) override {
    // Outputs are checked again on every run: their sizes guard the memory that the job reads.
    std::vector<Shape> shapes;
    for (const Tensor& output : outputs) {
      PENSTOCK_TRY(check_item(output, item));
      shapes.push_back(output.shape);
    }
    auto reader = family_.bind(model_, shapes);
    if (!reader) return std::unexpected(reader.error());
    auto extras = ExtraStorages::allocate(device, reader->extras, shapes, options_.max_objects);
    if (!extras) return std::unexpected(std::move(extras).error());
    Result<Decoded> decoded(std::in_place);
    const ItemRegions regions(outputs, item);
    auto done = run_detection_steps(device, outputs, options_, steps(*reader, regions, *extras),
                                    decoded->block);
    if (!done) return std::unexpected(std::move(done).error());
    PENSTOCK_TRY(extras->deliver(device, *done, *decoded));
    PENSTOCK_TRY(extras->make_masks(
        device, outputs, [regions](const Access& access) { return regions.values(access); }, model_,
        *done, *decoded));
    return decoded;
  }

 private:
  /// Where one batch item's values lie, for a job.
  class ItemRegions {
   public:
    ItemRegions(std::span<const Tensor> outputs, int item) : item_(static_cast<std::size_t>(item)) {
      for (const Tensor& output : outputs) {
        regions_.push_back(output.data);
        counts_.push_back(output.data.size / sizeof(float) /
                          static_cast<std::size_t>(output.shape[0]));
      }
    }
    std::vector<std::span<const float>> values(const Access& access) const {
      std::vector<std::span<const float>> values;
      for (std::size_t i = 0; i < regions_.size(); ++i) {
        values.push_back(item_values(access, regions_[i], item_, counts_[i]));
      }
      return values;
    }

   private:
    std::size_t item_;
    std::vector<StorageRegion> regions_;
    std::vector<std::size_t> counts_;
  };

  DetectionSteps steps(const BoxReader& reader, const ItemRegions& regions,
                       const ExtraStorages& extras) const {
    DetectionSteps steps{
        .collect = [collect = reader.collect, regions](
                       const Access& access, std::vector<Candidate>& candidates) -> Result<void> {
          collect(regions.values(access), candidates);
          // A box without area is no object, and one that is inside out would make unions negative.
          std::erase_if(candidates, [](const Candidate& c) {
            return !(c.record.x1 > c.record.x0 && c.record.y1 > c.record.y0);
          });
          return {};
        }};
    if (reader.extras.rotated_of && family_.nms == NmsNeed::kNeeded) {
      steps.thin = [box_of = reader.extras.rotated_of, regions, options = options_](
                       const Access& access, std::vector<Candidate>& candidates) {
        const auto values = regions.values(access);
        rotated_non_maximum_suppression(candidates, options, [&](std::int32_t row) {
          return box_of(values, static_cast<std::size_t>(row));
        });
      };
    }
    steps.storages = extras.storages();
    if (!steps.storages.empty()) {
      steps.gather = [extras, regions](const Access& access, std::span<const Candidate> objects) {
        extras.gather(access, regions.values(access), objects);
      };
    }
    return steps;
  }

  static Result<void> check_item(const Tensor& output, int item) {
    const auto bytes = byte_size(output.type, output.shape);
    if (!bytes) return std::unexpected(bytes.error());
    if (output.type != DataType::kFloat32 || !output.data.storage || output.data.size != *bytes) {
      return fail(
          ErrorKind::kInvalidArgument,
          str_format("output '{}' {} must be float32 with {} bytes, is {} with {}", output.name,
                     to_string(output.shape), *bytes, to_string(output.type), output.data.size));
    }
    if (output.shape.empty() || item < 0 || item >= output.shape[0]) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("output '{}' {} has no batch item {}", output.name,
                             to_string(output.shape), item));
    }
    return {};
  }

  const BoxFamily family_;
  const BoxModel model_;
  const DecodeOptions options_;
};

}  // namespace

std::unexpected<Error> misfit(std::string_view family, std::span<const Shape> shapes,
                              const std::string& why) {
  std::string text;
  for (const Shape& shape : shapes) {
    if (!text.empty()) text += ", ";
    text += to_string(shape);
  }
  return fail(ErrorKind::kInvalidArgument,
              str_format("outputs {} are not those of family '{}': {}", text, family, why));
}

Result<std::size_t> class_count(std::string_view family, const BoxModel& model,
                                std::span<const Shape> shapes, std::int64_t side,
                                std::int64_t others) {
  const std::int64_t classes = side - others;
  if (classes < 1) {
    return misfit(family, shapes, str_format("{} values a box leave no class", side));
  }
  if (model.classes != 0 && std::cmp_not_equal(classes, model.classes)) {
    return misfit(family, shapes, str_format("{} labels for {} classes", model.classes, classes));
  }
  return static_cast<std::size_t>(classes);
}

DetectionRecord box_from_center(float x, float y, float width, float height, float score,
                                std::int32_t class_id) {
  return {.x0 = x - width / 2,
          .y0 = y - height / 2,
          .x1 = x + width / 2,
          .y1 = y + height / 2,
          .score = score,
          .class_id = class_id};
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

Result<std::unique_ptr<OutputDecoder>> create_box_decoder(const BoxFamily& family,
                                                          const Manifest& manifest,
                                                          const DecodeOptions& options) {
  const BoxModel model{.width = manifest.preprocess.width,
                       .height = manifest.preprocess.height,
                       .classes = manifest.labels.size(),
                       .threshold = options.threshold,
                       .keypoints = manifest.keypoints.size(),
                       .pixel_threshold = manifest.pixel_threshold,
                       .unclip_ratio = manifest.unclip_ratio};
  if (model.width < 1 || model.height < 1) {
    return fail(ErrorKind::kInvalidArgument, "the manifest has no input size");
  }
  std::vector<Shape> shapes;
  for (const TensorSpec& output : manifest.outputs) {
    Shape& shape = shapes.emplace_back();
    for (const Dimension& dim : output.dims) shape.push_back(dim.is_fixed() ? dim.minimum : -1);
  }
  const auto reader = family.bind(model, shapes);
  if (!reader) return std::unexpected(reader.error());
  PENSTOCK_TRY(check_budget(reader->extras, shapes, options.max_objects));
  DecodeOptions used = options;
  // The model has thinned its boxes itself, or pairs each object with one: at 1 no box suppresses
  // another.
  if (family.nms == NmsNeed::kNone) used.iou_threshold = 1.0f;
  return std::make_unique<BoxDecoder>(family, model, used);
}

}  // namespace penstock
