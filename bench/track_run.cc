// SPDX-License-Identifier: Apache-2.0
#include "bench/track_run.h"

#include <gst/analytics/analytics.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>

#include <cmath>
#include <ctime>

#include "gst/gst_ptr.h"
#include "penstock/base/str_format.h"

namespace penstock::bench {
namespace {

constexpr GstClockTime kFrame = 40 * GST_MSECOND;

double thread_cpu_us() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return double(used.tv_sec) * 1e6 + double(used.tv_nsec) / 1e3;
}

GstBuffer* make_buffer(std::size_t number, const std::vector<Detection>& detections) {
  GstBuffer* buffer = gst_buffer_new();
  GST_BUFFER_PTS(buffer) = number * kFrame;
  GST_BUFFER_DURATION(buffer) = kFrame;
  GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer);
  for (const Detection& object : detections) {
    GstAnalyticsODMtd added;
    gst_analytics_relation_meta_add_od_mtd(
        meta, g_quark_from_string(object.label.c_str()), gint(std::lround(object.x)),
        gint(std::lround(object.y)), gint(std::lround(object.width)),
        gint(std::lround(object.height)), object.confidence, &added);
  }
  return buffer;
}

/// Objects related to a track. Ids are counted on by one: ioutracker begins at 0, which in our
/// records is none.
std::vector<Detection> told_by(GstBuffer* buffer) {
  std::vector<Detection> told;
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
  if (meta == nullptr) return told;
  gpointer state = nullptr;
  GstAnalyticsMtd record;
  while (gst_analytics_relation_meta_iterate(meta, &state, gst_analytics_od_mtd_get_mtd_type(),
                                             &record)) {
    gpointer tracks = nullptr;
    GstAnalyticsTrackingMtd track;
    if (!gst_analytics_relation_meta_get_direct_related(
            meta, record.id, GST_ANALYTICS_REL_TYPE_RELATE_TO,
            gst_analytics_tracking_mtd_get_mtd_type(), &tracks, &track)) {
      continue;
    }
    guint64 id = 0;
    GstClockTime first = 0, last = 0;
    gboolean lost = FALSE;
    gst_analytics_tracking_mtd_get_info(&track, &id, &first, &last, &lost);
    gint x = 0, y = 0, width = 0, height = 0;
    gst_analytics_od_mtd_get_location(&record, &x, &y, &width, &height, nullptr);
    Detection& object = told.emplace_back();
    object.x = float(x);
    object.y = float(y);
    object.width = float(width);
    object.height = float(height);
    object.track_id = std::int64_t(id) + 1;
  }
  return told;
}

/// Both probes run on the streaming thread.
struct Watch {
  TrackRun run;
  double started = 0;
};

GstPadProbeReturn on_arrival(GstPad*, GstPadProbeInfo*, gpointer data) {
  static_cast<Watch*>(data)->started = thread_cpu_us();
  return GST_PAD_PROBE_OK;
}

GstPadProbeReturn on_departure(GstPad*, GstPadProbeInfo* info, gpointer data) {
  Watch& watch = *static_cast<Watch*>(data);
  watch.run.cpu_us += thread_cpu_us() - watch.started;
  watch.run.told.push_back(told_by(GST_PAD_PROBE_INFO_BUFFER(info)));
  return GST_PAD_PROBE_OK;
}

void watch_pad(GstElement* element, const char* name, GstPadProbeCallback probe, Watch& watch) {
  const gst::GstPtr<GstPad> pad(gst_element_get_static_pad(element, name));
  gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, probe, &watch, nullptr);
}

Result<void> play(GstElement* pipeline) {
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  const gst::GstPtr<GstBus> bus(gst_element_get_bus(pipeline));
  const gst::GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
      bus.get(), 120 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  gst_element_set_state(pipeline, GST_STATE_NULL);
  if (message != nullptr && GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return {};
  return fail(ErrorKind::kInternal, "the pipeline does not come to its end");
}

}  // namespace

Result<TrackRun> run_tracker(const std::string& element,
                             const std::vector<testing::CrowdFrame>& crowd,
                             const testing::CrowdOptions& options) {
  const std::string text = str_format(
      "appsrc name=source format=time max-bytes=0 max-buffers=0 max-time=0 "
      "caps=video/x-raw,format=NV12,width={},height={},framerate=25/1 "
      "! {} name=tracker ! fakesink sync=false async=false",
      options.width, options.height, element);
  GError* error = nullptr;
  const gst::GstPtr<GstElement> pipeline(gst_parse_launch(text.c_str(), &error));
  if (error != nullptr) {
    const std::string why = error->message;
    g_error_free(error);
    return fail(ErrorKind::kNotFound, why);
  }
  Watch watch;
  const gst::GstPtr<GstElement> tracker(gst_bin_get_by_name(GST_BIN(pipeline.get()), "tracker"));
  watch_pad(tracker.get(), "sink", on_arrival, watch);
  watch_pad(tracker.get(), "src", on_departure, watch);
  const gst::GstPtr<GstElement> source(gst_bin_get_by_name(GST_BIN(pipeline.get()), "source"));
  for (std::size_t i = 0; i < crowd.size(); ++i) {
    gst_app_src_push_buffer(GST_APP_SRC(source.get()), make_buffer(i, crowd[i].detections));
  }
  gst_app_src_end_of_stream(GST_APP_SRC(source.get()));
  if (auto played = play(pipeline.get()); !played) {
    return std::unexpected(std::move(played).error().context(element));
  }
  if (watch.run.told.size() != crowd.size()) {
    return fail(ErrorKind::kInternal, str_format("{} let {} of {} frames pass", element,
                                                 watch.run.told.size(), crowd.size()));
  }
  watch.run.cpu_us /= double(crowd.size());
  return std::move(watch.run);
}

}  // namespace penstock::bench
