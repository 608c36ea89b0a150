// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/upstream_copies.h"

#include <gst/gst.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace penstock {
namespace {

struct Counts {
  std::atomic<std::uint64_t> decoded{0};
  std::atomic<std::uint64_t> copied{0};
  GstDebugCategory* category = nullptr;
  GstDebugLevel shown = GST_LEVEL_NONE;  ///< What the user asked for.
};

Counts& counts() {
  static Counts instance;
  return instance;
}

// gst_ffmpegviddec_video_frame logs each decoded frame's "repeat_pict:", and get_output_buffer,
// which copies, logs "get output buffer" on entry. Other functions' messages are never formatted.
void count(GstDebugCategory* category, GstDebugLevel level, const gchar* file,
           const gchar* function, gint line, GObject* object, GstDebugMessage* message, gpointer) {
  Counts& c = counts();
  if (category != c.category) {
    gst_debug_log_default(category, level, file, function, line, object, message, nullptr);
    return;
  }
  if (level == GST_LEVEL_LOG && std::strcmp(function, "get_output_buffer") == 0) {
    const gchar* text = gst_debug_message_get(message);
    if (text != nullptr && std::strcmp(text, "get output buffer") == 0) c.copied.fetch_add(1);
  } else if (level == GST_LEVEL_DEBUG &&
             std::strcmp(function, "gst_ffmpegviddec_video_frame") == 0) {
    const gchar* text = gst_debug_message_get(message);
    if (text != nullptr && std::strncmp(text, "repeat_pict:", 12) == 0) c.decoded.fetch_add(1);
  }
  if (level <= c.shown) {
    gst_debug_log_default(category, level, file, function, line, object, message, nullptr);
  }
}

}  // namespace

UpstreamCopies::UpstreamCopies() {
  Counts& c = counts();
  c.decoded = 0;
  c.copied = 0;
  // The category exists once the libav plugin is loaded.
  GstPlugin* plugin = gst_plugin_load_by_name("libav");
  if (plugin != nullptr) gst_object_unref(plugin);
  GSList* categories = gst_debug_get_all_categories();
  for (GSList* item = categories; item != nullptr; item = item->next) {
    auto* category = static_cast<GstDebugCategory*>(item->data);
    if (std::strcmp(gst_debug_category_get_name(category), "libav") == 0) c.category = category;
  }
  g_slist_free(categories);
  if (c.category == nullptr) return;
  c.shown = gst_debug_category_get_threshold(c.category);
  gst_debug_remove_log_function(gst_debug_log_default);
  gst_debug_add_log_function(count, nullptr, nullptr);
  gst_debug_category_set_threshold(c.category, std::max(c.shown, GST_LEVEL_LOG));
}

UpstreamCopies::~UpstreamCopies() {
  Counts& c = counts();
  if (c.category == nullptr) return;
  gst_debug_category_set_threshold(c.category, c.shown);
  gst_debug_remove_log_function(count);
  gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
  c.category = nullptr;
}

std::uint64_t UpstreamCopies::decoded() const { return counts().decoded; }
std::uint64_t UpstreamCopies::copied() const { return counts().copied; }

}  // namespace penstock
