// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/upstream_copies.h"

#include <gst/gst.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "penstock/pipeline/known_copy.h"

namespace penstock {
namespace {

struct Counts {
  CopyWords words;
  std::atomic<std::uint64_t> decoded{0};
  std::atomic<std::uint64_t> copied{0};
  std::atomic<bool> understood{false};  ///< The known copy was noticed.
  GstDebugCategory* category = nullptr;
  GstDebugLevel shown = GST_LEVEL_NONE;  ///< What the user asked for.
  std::FILE* stream = nullptr;  ///< Where the wrapped log function prints; null: not wrapped.
};

Counts& counts() {
  static Counts instance;
  return instance;
}

bool says(GstDebugMessage* message, const char* start) {
  const gchar* text = gst_debug_message_get(message);
  return text != nullptr && std::strncmp(text, start, std::strlen(start)) == 0;
}

// gst_ffmpegviddec_video_frame logs each decoded frame's "repeat_pict:", and get_output_buffer,
// which copies, logs "get output buffer" on entry. Other functions' messages are never formatted.
void count_copy(GstDebugCategory* category, GstDebugLevel level, const gchar*,
                const gchar* function, gint, GObject*, GstDebugMessage* message, gpointer) {
  Counts& c = counts();
  if (category != c.category) return;
  if (level == GST_LEVEL_LOG && std::strcmp(function, c.words.copying) == 0) {
    if (says(message, c.words.copied)) c.copied.fetch_add(1);
  } else if (level == GST_LEVEL_DEBUG && std::strcmp(function, c.words.decoding) == 0) {
    if (says(message, c.words.decoded)) c.decoded.fetch_add(1);
  }
}

/// GStreamer's own log function for all but what was raised for count_copy().
void print_as_before(GstDebugCategory* category, GstDebugLevel level, const gchar* file,
                     const gchar* function, gint line, GObject* object, GstDebugMessage* message,
                     gpointer) {
  const Counts& c = counts();
  if (category == c.category && level > c.shown) return;
  gst_debug_log_default(category, level, file, function, line, object, message, c.stream);
}

/// The stream that gst_init() gave to gst_debug_log_default; null when it is a file of the user's.
std::FILE* default_stream() {
  const char* file = std::getenv("GST_DEBUG_FILE");
  if (file == nullptr || *file == '\0') return stderr;
  return std::strcmp(file, "-") == 0 ? stdout : nullptr;
}

/// Has libav log what count_copy() reads, without its being printed. False where that can't be.
bool raise(Counts& c) {
  std::FILE* stream = default_stream();
  if (stream == nullptr) return false;
  // An application that has taken the default away prints in a way of its own, which can't be
  // wrapped.
  // (A macro without parentheses: nothing may stand beside it.)
  const guint removed = gst_debug_remove_log_function(gst_debug_log_default);
  if (removed == 0) return false;
  c.stream = stream;
  gst_debug_add_log_function(print_as_before, nullptr, nullptr);
  gst_debug_category_set_threshold(c.category, GST_LEVEL_LOG);
  return true;
}

/// Whether one decoded picture that is copied counts as such.
bool notices_a_copy() {
  Counts& c = counts();
  const bool noticed = decode_with_a_copy() && c.decoded == 1 && c.copied == 1;
  c.decoded = 0;
  c.copied = 0;
  return noticed;
}

}  // namespace

UpstreamCopies::UpstreamCopies(const CopyWords& words) {
  Counts& c = counts();
  c.words = words;
  c.decoded = 0;
  c.copied = 0;
  c.understood = false;
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
  c.stream = nullptr;
  gst_debug_add_log_function(count_copy, nullptr, nullptr);
  if (c.shown >= GST_LEVEL_LOG || raise(c)) c.understood = notices_a_copy();
}

UpstreamCopies::~UpstreamCopies() {
  Counts& c = counts();
  if (c.category == nullptr) return;
  if (c.stream != nullptr) {
    gst_debug_category_set_threshold(c.category, c.shown);
    gst_debug_remove_log_function(print_as_before);
    gst_debug_add_log_function(gst_debug_log_default, c.stream, nullptr);
  }
  gst_debug_remove_log_function(count_copy);
  c.category = nullptr;
}

bool UpstreamCopies::is_known() const { return counts().understood && decoded() > 0; }
std::uint64_t UpstreamCopies::decoded() const { return counts().decoded; }
std::uint64_t UpstreamCopies::copied() const { return counts().copied; }

}  // namespace penstock
