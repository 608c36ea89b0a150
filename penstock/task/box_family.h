// SPDX-License-Identifier: Apache-2.0
//
// BoxFamily: what tells one family of box detectors from another. A family looks at the shapes of
// the model's outputs and answers how candidates are read from one batch item, and what else
// belongs to those that survive; everything else (device job, NMS, read-back) is
// create_box_decoder's.
//
//   constexpr BoxFamily kYolox{"yolox", NmsNeed::kNeeded, bind_yolox};
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/tensor.h"
#include "penstock/task/nms.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// More rows than any detector of this kind has (YOLO at 2048 x 2048 has 86016); a budget for P04.
inline constexpr std::int64_t kMaxBoxRows = std::int64_t{1} << 20;

/// What a family may need to know besides shapes.
struct BoxModel {
  int width = 0;  ///< Of the model's input, pixels.
  int height = 0;
  std::size_t classes = 0;  ///< Labels in the manifest; 0 when it names none.
  float threshold = 0;
  std::size_t keypoints = 0;  ///< Names in the manifest.
  float pixel_threshold = 0;  ///< Of db-text, as the manifest's.
  float unclip_ratio = 0;
};

/// The values of one batch item of each output, in the outputs' order.
using ItemValues = std::span<const std::span<const float>>;
/// Appends candidates whose score is >= the threshold, in model-input pixels. Runs in a device job:
/// captures by value only.
using CollectItem = std::function<void(ItemValues, std::vector<Candidate>&)>;

/// What belongs to an object besides its box. The functions get the object's row (its
/// Candidate::index), which is one that the family has put forward, and run in a device job, too.
struct BoxExtras {
  std::size_t keypoints = 0;  ///< An object; none without `keypoints_of`.
  /// Fills one object's keypoints, in model-input pixels.
  std::function<void(ItemValues, std::size_t row, std::span<KeypointRecord>)> keypoints_of{};
  /// Its turned box, whose upright hull is the candidate; NMS is then that of turned boxes.
  std::function<RotatedRecord(ItemValues, std::size_t row)> rotated_of{};
  std::size_t prototypes = 0;        ///< Channels; none without `coefficients_of`.
  std::size_t prototype_output = 0;  ///< Which output is [batch, prototypes, h, w].
  /// Fills one object's weights of the prototypes.
  std::function<void(ItemValues, std::size_t row, std::span<float>)> coefficients_of{};
};

/// How a family reads one batch item.
struct BoxReader {
  CollectItem collect;
  BoxExtras extras{};
  BoxReader(CollectItem only_boxes) : collect(std::move(only_boxes)) {}  // NOLINT: nothing is lost
  BoxReader(CollectItem boxes, BoxExtras more)
      : collect(std::move(boxes)), extras(std::move(more)) {}
};

/// `shapes` have -1 for dimensions that are not fixed. kInvalidArgument says what does not fit.
using BindBoxes = Result<BoxReader> (*)(const BoxModel& model, std::span<const Shape> shapes);

enum class NmsNeed { kNeeded, kNone };

struct BoxFamily {
  std::string_view name;
  NmsNeed nms = NmsNeed::kNeeded;
  BindBoxes bind = nullptr;
  std::string_view task = "detection";  ///< One of kTasks.
};

/// kInvalidArgument: outputs or labels that do not fit the family, named with their shapes.
Result<std::unique_ptr<OutputDecoder>> create_box_decoder(const BoxFamily& family,
                                                          const Manifest& manifest,
                                                          const DecodeOptions& options);

/// "outputs [1,84,8400] are not YOLOv8's: `why`".
std::unexpected<Error> misfit(std::string_view family, std::span<const Shape> shapes,
                              const std::string& why);

/// The class count of a tensor side that holds `others` values beside the classes; checks it
/// against the labels. kInvalidArgument when it leaves no class or contradicts them.
Result<std::size_t> class_count(std::string_view family, const BoxModel& model,
                                std::span<const Shape> shapes, std::int64_t side,
                                std::int64_t others);

/// Whether a dimension can be `wanted`: equal, or not fixed yet.
inline bool may_be(std::int64_t side, std::int64_t wanted) { return side == wanted || side < 0; }

DetectionRecord box_from_center(float x, float y, float width, float height, float score,
                                std::int32_t class_id);

/// 1 / (1 + e^-x), and NaN for NaN.
float sigmoid(float x);

// The families, one file each, or one for what they have in common.
Result<BoxReader> bind_yolov5(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_yolov8(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_end_to_end(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_yolox(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_rtdetr(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_ssd(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_yolov8_seg(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_end_to_end_seg(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_yolov8_pose(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_end_to_end_pose(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_movenet(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_yolov8_obb(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_end_to_end_obb(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_blazeface(const BoxModel& model, std::span<const Shape> shapes);
Result<BoxReader> bind_db_text(const BoxModel& model, std::span<const Shape> shapes);

}  // namespace penstock
