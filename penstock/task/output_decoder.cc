// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/output_decoder.h"

#include <algorithm>
#include <cmath>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/nanodet.h"

namespace penstock {
namespace {

constexpr std::array kBoxFamilies{
    BoxFamily{"yolov5", NmsNeed::kNeeded, bind_yolov5},
    BoxFamily{"yolov8", NmsNeed::kNeeded, bind_yolov8},
    BoxFamily{"yolo-end-to-end", NmsNeed::kNone, bind_end_to_end},
    BoxFamily{"yolox", NmsNeed::kNeeded, bind_yolox},
    BoxFamily{"rtdetr", NmsNeed::kNone, bind_rtdetr},
    BoxFamily{"ssd", NmsNeed::kNone, bind_ssd},
};

Result<std::unique_ptr<OutputDecoder>> create_for_family(const Manifest& manifest,
                                                         const DecodeOptions& options) {
  if (manifest.family == "nanodet") return create_nanodet_decoder(manifest, options);
  std::string known = "nanodet";
  for (const BoxFamily& family : kBoxFamilies) {
    if (manifest.family == family.name) return create_box_decoder(family, manifest, options);
    known += str_format(", {}", family.name);
  }
  return fail(
      ErrorKind::kUnsupported,
      str_format("no output decoder for family '{}'; this build has: {}", manifest.family, known));
}

Result<void> check_options(const DecodeOptions& options) {
  // Written so that NaN fails.
  if (!(options.threshold >= 0.0f && options.threshold <= 1.0f)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("threshold {} is not within 0..1", options.threshold));
  }
  if (!(options.iou_threshold >= 0.0f && options.iou_threshold <= 1.0f)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("IoU threshold {} is not within 0..1", options.iou_threshold));
  }
  if (options.max_objects < 1 || options.max_objects > kMaxDetections) {
    return fail(ErrorKind::kInvalidArgument, str_format("at most {} objects is not within 1..{}",
                                                        options.max_objects, kMaxDetections));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_decoder(const Manifest& manifest,
                                                      const DecodeOptions& options) {
  const auto where = [&] { return str_format("decoding outputs of model '{}'", manifest.name); };
  if (auto checked = check_options(options); !checked) {
    return std::unexpected(checked.error().context(where()));
  }
  auto decoder = create_for_family(manifest, options);
  if (!decoder) return std::unexpected(std::move(decoder).error().context(where()));
  return decoder;
}

std::vector<Detection> to_detections(const DetectionBlock& block, const Letterbox& letterbox,
                                     const std::vector<std::string>& labels) {
  std::vector<Detection> detections;
  const std::size_t count = std::min<std::size_t>(block.count, block.records.size());
  detections.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const DetectionRecord& record = block.records[i];
    if (!std::isfinite(record.score)) continue;
    const auto box =
        letterbox.to_source({record.x0, record.y0, record.x1 - record.x0, record.y1 - record.y0});
    if (!box) continue;
    const bool named =
        record.class_id >= 0 && static_cast<std::size_t>(record.class_id) < labels.size();
    detections.push_back({.class_id = record.class_id,
                          .label = named ? labels[static_cast<std::size_t>(record.class_id)]
                                         : str_format("class {}", record.class_id),
                          .confidence = record.score,
                          .x = box->x,
                          .y = box->y,
                          .width = box->width,
                          .height = box->height});
  }
  return detections;
}

}  // namespace penstock
