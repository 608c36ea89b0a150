// SPDX-License-Identifier: Apache-2.0
//
// OutputDecoder turns a model's output tensors into compact records on the device, so that only
// those are read back (contract P03). One file a model family.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "penstock/media/geometry.h"
#include "penstock/memory/device.h"
#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"
#include "penstock/records/records.h"

namespace penstock {

inline constexpr int kMaxDetections = 300;

/// Corners in model-input pixels.
struct DetectionRecord {
  float x0, y0, x1, y1;
  float score;
  std::int32_t class_id;
};
static_assert(sizeof(DetectionRecord) == 24);

/// The read-back unit: 7204 bytes.
struct DetectionBlock {
  std::uint32_t count = 0;
  std::array<DetectionRecord, kMaxDetections> records;
};
static_assert(sizeof(DetectionBlock) == 7204);

/// The others are in model-input pixels, too.
struct KeypointRecord {
  float x, y, score;
};
struct RotatedRecord {
  float center_x, center_y, width, height;
  float angle;  ///< Radians, as RotatedBox's.
};
struct ClassRecord {
  std::int32_t class_id;
  float score;
};

/// What of a result stays on the device (contract P03). Each tensor shares its storage's ownership.
struct DeviceFindings {
  /// uint8 [masks, h, w] over the whole model input: 255 x the probability that a pixel is the
  /// object's, 0 outside its box. To be sampled bilinearly; the edge is at 127.5.
  std::optional<Tensor> masks{};
  /// uint8 [h, w] over the whole model input: the class of each pixel.
  std::optional<Tensor> class_map{};
  std::vector<Tensor> tensors{};  ///< The raw task's outputs, with the batch of all its frames.
  int item = 0;                   ///< Which batch item of `tensors` is this frame's.
  Letterbox letterbox{};          ///< The way from the model's input to the source.
};

/// What a decoder says about one batch item.
struct Decoded {
  DetectionBlock block{};
  std::size_t keypoints_per_object = 0;
  std::vector<KeypointRecord> keypoints{};    ///< block.count x keypoints_per_object.
  std::vector<RotatedRecord> rotated{};       ///< One a box of the block, or none at all.
  std::vector<ClassRecord> classes{};         ///< Score descending.
  std::vector<ClassRecord> characters{};      ///< Of one line of text, in the order of reading.
  std::vector<std::uint32_t> class_pixels{};  ///< Of the class map, by class, without padding.
  std::vector<float> embedding{};
  std::vector<TensorRecord> tensors{};
  DeviceFindings device{};
  /// Why the outputs say nothing of the picture, with the tensor's name: numbers that are none
  /// where nothing else is to go by. Then nothing else is there.
  std::string unusable{};
};

struct DecodeOptions {
  float threshold = 0.4f;  ///< Score must be >= this. NaN and infinite scores never win.
  float iou_threshold = 0.5f;
  int max_objects = kMaxDetections;
  bool class_agnostic = false;
  /// Raw outputs are read back, too; more than 256 KiB a frame is an error.
  bool read_tensors = false;
};

/// What the manifest says of decoding, for a caller to change where its user says otherwise.
/// Whoever decodes starts from this, so that no key is honoured in one place and not in another.
DecodeOptions decode_options_of(const Manifest& manifest);

class OutputDecoder {
 public:
  virtual ~OutputDecoder() = default;

  /// Decodes batch item `item` on `device` after the outputs' fences, reads the compact records
  /// back. Boxes are sorted by score descending, then index ascending, after NMS. `letterbox` says
  /// where the picture lies in the model's input; null: all of it.
  virtual Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item = 0,
                                 const Letterbox* letterbox = nullptr) = 0;
};

/// The decoder of manifest.family; checks that the family is one of manifest.task and that the
/// outputs' shapes fit it.
Result<std::unique_ptr<OutputDecoder>> create_decoder(const Manifest& manifest,
                                                      const DecodeOptions& options);

/// Findings in source pixels with labels: inverse geometry, clipping, empty boxes dropped with what
/// belongs to them (P05).
Findings to_findings(Decoded decoded, const Letterbox& letterbox,
                     const std::vector<std::string>& labels);

}  // namespace penstock
