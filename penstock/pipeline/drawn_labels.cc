// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/drawn_labels.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <vector>

namespace penstock {
namespace {

struct Object {
  GQuark label = 0;
  gint x = 0, y = 0, width = 0, height = 0;
  gfloat angle = 0, confidence = 0;
};

std::vector<Object> objects_of(GstAnalyticsRelationMeta* meta) {
  std::vector<Object> objects;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                             &record)) {
    const GstAnalyticsODMtd* box = &record;
    Object object;
    object.label = gst_analytics_od_mtd_get_obj_type(box);
    gst_analytics_od_mtd_get_oriented_location(box, &object.x, &object.y, &object.width,
                                               &object.height, &object.angle, &object.confidence);
    objects.push_back(object);
  }
  return objects;
}

GQuark drawn_quark(GQuark label) {
  const gchar* text = g_quark_to_string(label);
  return text != nullptr ? g_quark_from_string(drawn_label(text).c_str()) : label;
}

}  // namespace

std::string drawn_label(std::string_view label) {
  gchar* valid = g_utf8_make_valid(label.data(), gssize(label.size()));
  std::string text;
  long length = 0;
  for (const gchar* at = valid; *at != '\0'; at = g_utf8_next_char(at), ++length) {
    if (length == kMaxDrawnLabel) {
      text += "\u2026";
      break;
    }
    if (g_unichar_iscntrl(g_utf8_get_char(at))) {
      text += ' ';
    } else {
      text.append(at, g_utf8_next_char(at));
    }
  }
  g_free(valid);
  gchar* escaped = g_markup_escape_text(text.c_str(), gssize(text.size()));
  std::string markup(escaped);
  g_free(escaped);
  return markup;
}

GstBuffer* with_drawn_labels(GstBuffer* buffer) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) return buffer;
  std::vector<Object> objects = objects_of(meta);
  const auto changes = [](const Object& object) {
    return drawn_quark(object.label) != object.label;
  };
  if (std::ranges::none_of(objects, changes)) return buffer;
  // Of the buffer alone: its memories stay as they are.
  buffer = gst_buffer_make_writable(buffer);
  meta = gst_buffer_get_analytics_relation_meta(buffer);
  gst_buffer_remove_meta(buffer, reinterpret_cast<GstMeta*>(meta));
  meta = gst_buffer_add_analytics_relation_meta(buffer);
  for (const Object& object : objects) {
    GstAnalyticsODMtd box;
    gst_analytics_relation_meta_add_oriented_od_mtd(meta, drawn_quark(object.label), object.x,
                                                    object.y, object.width, object.height,
                                                    object.angle, object.confidence, &box);
  }
  return buffer;
}

}  // namespace penstock
