// SPDX-License-Identifier: Apache-2.0
#include "gst/watermark_config.h"

#include <utility>

#include "gst/element_state.h"
#include "penstock/track/zone_text.h"
#include "penstock/track/zones.h"

namespace penstock::gst {
namespace {

enum Property : guint {
  kDevice = 1,
  kDraw,
  kLineWidth,
  kTextSize,
  kKeypointThreshold,
  kZones,
  kLines,
};

GType draw_type() {
  static const GFlagsValue values[] = {
      {kDrawBoxes, "Boxes of objects", "boxes"},
      {kDrawLabels, "Names of classes", "labels"},
      {kDrawIds, "Ids of tracks", "ids"},
      {kDrawConfidences, "Confidences in per cent", "confidences"},
      {kDrawMasks, "Masks of objects and class maps, half transparent", "masks"},
      {kDrawSkeletons, "Keypoints, and limbs of COCO-17 poses", "skeletons"},
      {kDrawZones, "Zones and lines with their names", "zones"},
      {0, nullptr, nullptr}};
  static const GType type = g_flags_register_static("PenWatermarkDraw", values);
  return type;
}

std::string text_of(const GValue* value) {
  const gchar* text = g_value_get_string(value);
  return text == nullptr ? "" : text;
}

PointF point_of(const ZonePoint& point) { return {point.x, point.y}; }

}  // namespace

void install_watermark_properties(GObjectClass* klass) {
  const WatermarkConfig initial;
  const auto install = [klass](guint id, GParamSpec* spec) {
    g_object_class_install_property(klass, id, spec);
  };
  const auto text = [&](guint id, const char* name, const char* nick, const char* blurb,
                        const char* value) {
    install(id, g_param_spec_string(name, nick, blurb, value, kReadyProperty));
  };
  text(kDevice, "device", "Device",
       "Where frames lie and drawing happens: cpu, cuda[:N], hip[:N]; cuda and hip are not in this "
       "release",
       initial.device.c_str());
  install(kDraw, g_param_spec_flags("draw", "Drawn parts",
                                    "What is drawn, as in draw=boxes+labels: names of classes are "
                                    "labels, ids those of tracks",
                                    draw_type(), initial.draw, kReadyProperty));
  install(kLineWidth, g_param_spec_uint("line-width", "Line width",
                                        "Pixels; 0: the shorter side / 360, at least 1", 0,
                                        guint{kMaxLineWidth}, initial.line_width, kReadyProperty));
  install(kTextSize,
          g_param_spec_uint(
              "text-size", "Text size",
              "Height of capitals in pixels, 5 or more; 0: the shorter side / 64, 9 to 48", 0,
              guint{GlyphAtlas::kMostSize}, initial.text_size, kReadyProperty));
  install(kKeypointThreshold,
          g_param_spec_float("keypoint-threshold", "Keypoint threshold",
                             "Keypoints of less confidence, and their limbs, are left out", 0, 1,
                             initial.keypoint_threshold, kReadyProperty));
  text(kZones, "zones", "Zones", "Polygons to draw, written as for penzone", "");
  text(kLines, "lines", "Lines", "Lines to draw, written as for penzone", "");
}

bool set_watermark_property(WatermarkConfig& config, guint id, const GValue* value) {
  switch (id) {
    case kDevice:
      config.device = text_of(value);
      return true;
    case kDraw:
      config.draw = g_value_get_flags(value);
      return true;
    case kLineWidth:
      config.line_width = g_value_get_uint(value);
      return true;
    case kTextSize:
      config.text_size = g_value_get_uint(value);
      return true;
    case kKeypointThreshold:
      config.keypoint_threshold = g_value_get_float(value);
      return true;
    case kZones:
      config.zones = text_of(value);
      return true;
    case kLines:
      config.lines = text_of(value);
      return true;
    default:
      return false;
  }
}

bool get_watermark_property(const WatermarkConfig& config, guint id, GValue* value) {
  switch (id) {
    case kDevice:
      return g_value_set_string(value, config.device.c_str()), true;
    case kDraw:
      return g_value_set_flags(value, config.draw), true;
    case kLineWidth:
      return g_value_set_uint(value, config.line_width), true;
    case kTextSize:
      return g_value_set_uint(value, config.text_size), true;
    case kKeypointThreshold:
      return g_value_set_float(value, config.keypoint_threshold), true;
    case kZones:
      return g_value_set_string(value, config.zones.c_str()), true;
    case kLines:
      return g_value_set_string(value, config.lines.c_str()), true;
    default:
      return false;
  }
}

OverlayStyle style_of(const WatermarkConfig& config) {
  const auto has = [&](WatermarkPart part) { return (config.draw & part) != 0; };
  return {.boxes = has(kDrawBoxes),
          .labels = has(kDrawLabels),
          .ids = has(kDrawIds),
          .confidences = has(kDrawConfidences),
          .masks = has(kDrawMasks),
          .skeletons = has(kDrawSkeletons),
          .zones = has(kDrawZones),
          .line_width = static_cast<int>(config.line_width),
          .text_size = static_cast<int>(config.text_size),
          .keypoint_threshold = config.keypoint_threshold};
}

Result<std::vector<OverlayZone>> zones_of(const WatermarkConfig& config) {
  auto zones = parse_zones(config.zones);
  if (!zones) return std::unexpected(std::move(zones).error().context("property 'zones'"));
  auto lines = parse_lines(config.lines);
  if (!lines) return std::unexpected(std::move(lines).error().context("property 'lines'"));
  // What is no polygon to penzone is none here.
  if (auto made = ZoneCounter::create({.zones = *zones, .lines = *lines}); !made) {
    return std::unexpected(std::move(made).error().context("properties 'zones' and 'lines'"));
  }
  std::vector<OverlayZone> drawn;
  for (Zone& zone : *zones) {
    OverlayZone& made =
        drawn.emplace_back(OverlayZone{.name = std::move(zone.name), .corners = {}});
    for (const ZonePoint& corner : zone.corners) made.corners.push_back(point_of(corner));
  }
  for (CountingLine& line : *lines) {
    drawn.push_back({.name = std::move(line.name),
                     .corners = {point_of(line.from), point_of(line.to)},
                     .is_closed = false});
  }
  return drawn;
}

}  // namespace penstock::gst
