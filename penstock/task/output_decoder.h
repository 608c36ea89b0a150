// SPDX-License-Identifier: Apache-2.0
//
// OutputDecoder turns a model's output tensors into compact records on the device, so that only
// those are read back (contract P03). One file a model family.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

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

struct DecodeOptions {
  float threshold = 0.4f;  ///< Score must be >= this. NaN and infinite scores never win.
  float iou_threshold = 0.5f;
  int max_objects = kMaxDetections;
  bool class_agnostic = false;
};

class OutputDecoder {
 public:
  virtual ~OutputDecoder() = default;

  /// Decodes batch item `item` on `device` after the outputs' fences, reads the block back. Records
  /// are sorted by score descending, then index ascending, after NMS.
  virtual Result<DetectionBlock> decode(Device& device, std::span<const Tensor> outputs,
                                        int item = 0) = 0;
};

/// The decoder of manifest.family; checks that the outputs' shapes fit the family.
Result<std::unique_ptr<OutputDecoder>> create_decoder(const Manifest& manifest,
                                                      const DecodeOptions& options);

/// Records in source pixels with labels: inverse geometry, clipping, empty boxes dropped (P05).
std::vector<Detection> to_detections(const DetectionBlock& block, const Letterbox& letterbox,
                                     const std::vector<std::string>& labels);

}  // namespace penstock
