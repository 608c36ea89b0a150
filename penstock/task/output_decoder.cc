// SPDX-License-Identifier: Apache-2.0
#include "penstock/task/output_decoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/nanodet.h"
#include "penstock/task/whole_picture.h"

namespace penstock {
namespace {

constexpr std::array kBoxFamilies{
    BoxFamily{"yolov5", NmsNeed::kNeeded, bind_yolov5},
    BoxFamily{"yolov8", NmsNeed::kNeeded, bind_yolov8},
    BoxFamily{"yolo-end-to-end", NmsNeed::kNone, bind_end_to_end},
    BoxFamily{"yolox", NmsNeed::kNeeded, bind_yolox},
    BoxFamily{"rtdetr", NmsNeed::kNone, bind_rtdetr},
    BoxFamily{"ssd", NmsNeed::kNone, bind_ssd},
    BoxFamily{"yolov8-seg", NmsNeed::kNeeded, bind_yolov8_seg, "instance-segmentation"},
    BoxFamily{"yolo-end-to-end-seg", NmsNeed::kNone, bind_end_to_end_seg, "instance-segmentation"},
    BoxFamily{"yolov8-pose", NmsNeed::kNeeded, bind_yolov8_pose, "pose"},
    BoxFamily{"yolo-end-to-end-pose", NmsNeed::kNone, bind_end_to_end_pose, "pose"},
    BoxFamily{"movenet", NmsNeed::kNone, bind_movenet, "pose"},
    BoxFamily{"yolov8-obb", NmsNeed::kNeeded, bind_yolov8_obb, "oriented-detection"},
    BoxFamily{"yolo-end-to-end-obb", NmsNeed::kNone, bind_end_to_end_obb, "oriented-detection"},
    BoxFamily{"blazeface", NmsNeed::kNeeded, bind_blazeface, "pose"},
    BoxFamily{"db-text", NmsNeed::kNone, bind_db_text, "oriented-detection"},
};

/// Of the whole picture (whole_picture.h).
struct WholeFamily {
  std::string_view name;
  std::string_view task;
  Result<std::unique_ptr<OutputDecoder>> (*create)(const Manifest&, const DecodeOptions&);
};

constexpr std::array kWholeFamilies{
    WholeFamily{"classification", "classification", create_classification_decoder},
    WholeFamily{"semantic", "semantic-segmentation", create_semantic_decoder},
    WholeFamily{"embedding", "embedding", create_embedding_decoder},
    WholeFamily{"raw", "raw", create_raw_decoder},
    WholeFamily{"ctc", "text-recognition", create_ctc_decoder},
};

Result<void> check_task(const Manifest& manifest, std::string_view task) {
  if (manifest.task == task) return {};
  return fail(ErrorKind::kInvalidArgument,
              str_format("family '{}' is of task '{}', but the manifest's task is '{}'",
                         manifest.family, task, manifest.task));
}

Result<std::unique_ptr<OutputDecoder>> create_for_family(const Manifest& manifest,
                                                         const DecodeOptions& options) {
  if (manifest.family == "nanodet") {
    PENSTOCK_TRY(check_task(manifest, "detection"));
    return create_nanodet_decoder(manifest, options);
  }
  std::string known = "nanodet";
  for (const BoxFamily& family : kBoxFamilies) {
    known += str_format(", {}", family.name);
    if (manifest.family != family.name) continue;
    PENSTOCK_TRY(check_task(manifest, family.task));
    return create_box_decoder(family, manifest, options);
  }
  for (const WholeFamily& family : kWholeFamilies) {
    known += str_format(", {}", family.name);
    if (manifest.family != family.name) continue;
    PENSTOCK_TRY(check_task(manifest, family.task));
    return family.create(manifest, options);
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

DecodeOptions decode_options_of(const Manifest& manifest) {
  DecodeOptions options;
  options.threshold = manifest.threshold;
  options.iou_threshold = manifest.iou_threshold;
  options.class_agnostic = manifest.class_agnostic;
  return options;
}

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

namespace {

std::string label_of(std::int32_t class_id, const std::vector<std::string>& labels) {
  const bool named = class_id >= 0 && static_cast<std::size_t>(class_id) < labels.size();
  return named ? labels[static_cast<std::size_t>(class_id)] : str_format("class {}", class_id);
}

std::vector<Keypoint> to_keypoints(std::span<const KeypointRecord> records,
                                   const Letterbox& letterbox) {
  std::vector<Keypoint> keypoints;
  for (const KeypointRecord& record : records) {
    const auto at = letterbox.to_source(PointF{record.x, record.y});
    // One that is no number is none that the model saw; its place in the order stays.
    keypoints.push_back(at && std::isfinite(record.score)
                            ? Keypoint{.x = at->x, .y = at->y, .confidence = record.score}
                            : Keypoint{});
  }
  return keypoints;
}

/// On both axes the same scale, but for rounding; stretched models have none for a turned box.
std::optional<RotatedBox> to_rotated(const RotatedRecord& record, const Letterbox& letterbox) {
  const auto center = letterbox.to_source(PointF{record.center_x, record.center_y});
  if (!center || !std::isfinite(record.angle)) return std::nullopt;
  const double x = static_cast<double>(letterbox.crop.width) / letterbox.scaled_width;
  const double y = static_cast<double>(letterbox.crop.height) / letterbox.scaled_height;
  // The sides' vectors, each scaled by axis.
  const double cosine = std::cos(record.angle);
  const double sine = std::sin(record.angle);
  const RotatedBox box{
      .center_x = center->x,
      .center_y = center->y,
      .width = static_cast<float>(record.width * std::hypot(cosine * x, sine * y)),
      .height = static_cast<float>(record.height * std::hypot(sine * x, cosine * y)),
      .angle = static_cast<float>(std::atan2(sine * y, cosine * x))};
  // A model may say anything; what no picture holds is no box.
  constexpr float kMost = 4.0f * kMaxFrameSide;
  const bool plausible = std::abs(box.center_x) <= kMost && std::abs(box.center_y) <= kMost &&
                         box.width >= 0 && box.width <= kMost && box.height >= 0 &&
                         box.height <= kMost && std::isfinite(box.angle);
  return plausible ? std::optional(box) : std::nullopt;
}

void add_objects(const Decoded& decoded, const Letterbox& letterbox,
                 const std::vector<std::string>& labels, Findings& findings) {
  const DetectionBlock& block = decoded.block;
  const std::size_t count = std::min<std::size_t>(block.count, block.records.size());
  findings.objects.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const DetectionRecord& record = block.records[i];
    if (!std::isfinite(record.score)) continue;
    const auto box = letterbox.to_source(
        RectF{record.x0, record.y0, record.x1 - record.x0, record.y1 - record.y0});
    if (!box) continue;
    Detection& object = findings.objects.emplace_back();
    object.class_id = record.class_id;
    object.label = label_of(record.class_id, labels);
    object.confidence = record.score;
    object.x = box->x;
    object.y = box->y;
    object.width = box->width;
    object.height = box->height;
    const std::size_t per = decoded.keypoints_per_object;
    if (per > 0 && (i + 1) * per <= decoded.keypoints.size()) {
      object.keypoints =
          to_keypoints(std::span(decoded.keypoints).subspan(i * per, per), letterbox);
    }
    if (i < decoded.rotated.size()) object.rotated = to_rotated(decoded.rotated[i], letterbox);
    if (decoded.device.masks) object.mask = static_cast<int>(i);
  }
}

void add_areas(const Decoded& decoded, const std::vector<std::string>& labels, Findings& findings) {
  double pixels = 0;
  for (const std::uint32_t count : decoded.class_pixels) pixels += count;
  for (std::size_t i = 0; i < decoded.class_pixels.size(); ++i) {
    if (decoded.class_pixels[i] == 0) continue;
    const auto class_id = static_cast<std::int32_t>(i);
    findings.areas.push_back({.class_id = class_id,
                              .label = label_of(class_id, labels),
                              .fraction = static_cast<float>(decoded.class_pixels[i] / pixels)});
  }
  std::ranges::stable_sort(findings.areas, std::ranges::greater{}, &ClassArea::fraction);
}

void add_text(const Decoded& decoded, const std::vector<std::string>& labels, Findings& findings) {
  if (decoded.characters.empty()) return;
  TextLine& line = findings.texts.emplace_back();
  double sum = 0;
  for (const ClassRecord& character : decoded.characters) {
    line.text += label_of(character.class_id, labels);
    sum += character.score;
  }
  line.confidence = static_cast<float>(sum / static_cast<double>(decoded.characters.size()));
}

}  // namespace

Findings to_findings(Decoded decoded, const Letterbox& letterbox,
                     const std::vector<std::string>& labels) {
  Findings findings;
  add_objects(decoded, letterbox, labels, findings);
  for (const ClassRecord& record : decoded.classes) {
    if (!std::isfinite(record.score)) continue;
    findings.classes.push_back({.class_id = record.class_id,
                                .label = label_of(record.class_id, labels),
                                .confidence = record.score});
  }
  add_areas(decoded, labels, findings);
  add_text(decoded, labels, findings);
  findings.embedding = std::move(decoded.embedding);
  findings.tensors = std::move(decoded.tensors);
  return findings;
}

}  // namespace penstock
