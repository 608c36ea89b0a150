// SPDX-License-Identifier: Apache-2.0
//
// penwatermark's properties as values.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/draw/overlay.h"

namespace penstock::gst {

struct WatermarkConfig {
  std::string device = "cpu";
  guint draw = 0x7f;     ///< Bits of WatermarkPart.
  guint line_width = 0;  ///< Pixels; 0: by the picture.
  guint text_size = 0;   ///< Pixels; 0: by the picture.
  gfloat keypoint_threshold = OverlayStyle{}.keypoint_threshold;
  std::string zones;  ///< As penzone's.
  std::string lines;
};

enum WatermarkPart : guint {
  kDrawBoxes = 1,
  kDrawLabels = 2,
  kDrawIds = 4,
  kDrawConfidences = 8,
  kDrawMasks = 16,
  kDrawSkeletons = 32,
  kDrawZones = 64,
};

/// Properties that set_watermark_property and get_watermark_property handle; others have ids from
/// kFirstFreeWatermarkProperty on.
inline constexpr guint kFirstFreeWatermarkProperty = 100;
void install_watermark_properties(GObjectClass* klass);
/// False when `id` is none of them.
bool set_watermark_property(WatermarkConfig& config, guint id, const GValue* value);
bool get_watermark_property(const WatermarkConfig& config, guint id, GValue* value);

OverlayStyle style_of(const WatermarkConfig& config);
/// kInvalidArgument names property, place and what is wrong with it, as penzone does.
Result<std::vector<OverlayZone>> zones_of(const WatermarkConfig& config);

}  // namespace penstock::gst
