// SPDX-License-Identifier: Apache-2.0
#include "gst/pentrack.h"

#include <memory>
#include <utility>

#include "gst/bus_error.h"
#include "gst/element_state.h"
#include "gst/record_transform.h"
#include "gst/track_records.h"
#include "penstock/track/tracker.h"

using namespace penstock;
using namespace penstock::gst;

namespace {

/// The C++ side of a PenTrack. The options are guarded by the object lock, the rest is the
/// streaming thread's.
struct TrackCore {
  TrackerOptions options;
  std::unique_ptr<Tracker> tracker;
  TrackedStream stream;
  TrackedPicture picture;
};

enum Property : guint {
  kSureScore = 1,
  kUnsureScore,
  kMatchIou,
  kUnsureMatchIou,
  kConfirmFrames,
  kMaxMissedFrames,
  kPredictedFrames,
  kMaxTracks,
  kFirstId,
};

}  // namespace

struct _PenTrack {
  GstBaseTransform parent;
  TrackCore* core;
};

G_DEFINE_TYPE(PenTrack, pen_track, GST_TYPE_BASE_TRANSFORM)

namespace {

void report(GstBaseTransform* base, const char* operation, const Error& error) {
  post_error(GST_ELEMENT(base), "cpu", operation, error);
}

gboolean start(GstBaseTransform* base) {
  auto* self = PEN_TRACK(base);
  GST_OBJECT_LOCK(self);
  const TrackerOptions options = self->core->options;
  GST_OBJECT_UNLOCK(self);
  auto tracker = Tracker::create(options);
  if (!tracker) {
    report(base, "reading its properties", tracker.error());
    return FALSE;
  }
  self->core->tracker = std::move(*tracker);
  self->core->stream = {};
  return TRUE;
}

gboolean stop(GstBaseTransform* base) {
  PEN_TRACK(base)->core->tracker.reset();
  return TRUE;
}

gboolean set_caps(GstBaseTransform* base, GstCaps* caps, GstCaps*) {
  TrackedPicture& picture = PEN_TRACK(base)->core->picture;
  return read_picture_size(base, caps, picture.width, picture.height);
}

gboolean sink_event(GstBaseTransform* base, GstEvent* event) {
  TrackCore& core = *PEN_TRACK(base)->core;
  if (begins_anew(event) && core.tracker != nullptr) {
    core.tracker->reset();
    core.stream = {};
  }
  return GST_BASE_TRANSFORM_CLASS(pen_track_parent_class)->sink_event(base, event);
}

GstFlowReturn transform(GstBaseTransform* base, GstBuffer* buffer) {
  TrackCore& core = *PEN_TRACK(base)->core;
  // NONE is -1 and comes back as NONE.
  core.picture.time = Nanoseconds(static_cast<gint64>(running_time_of(base, buffer)));
  const auto tracked = track_records(*core.tracker, core.stream, buffer, core.picture);
  if (tracked) return GST_FLOW_OK;
  report(base, "adding tracks", tracked.error());
  return GST_FLOW_ERROR;
}

bool set_option(TrackerOptions& options, guint id, const GValue* value) {
  switch (id) {
    case kSureScore:
      options.sure_score = g_value_get_float(value);
      return true;
    case kUnsureScore:
      options.unsure_score = g_value_get_float(value);
      return true;
    case kMatchIou:
      options.match_iou = g_value_get_float(value);
      return true;
    case kUnsureMatchIou:
      options.unsure_match_iou = g_value_get_float(value);
      return true;
    case kConfirmFrames:
      options.confirm_frames = static_cast<int>(g_value_get_uint(value));
      return true;
    case kMaxMissedFrames:
      options.max_missed_frames = static_cast<int>(g_value_get_uint(value));
      return true;
    case kPredictedFrames:
      options.predicted_frames = static_cast<int>(g_value_get_uint(value));
      return true;
    case kMaxTracks:
      options.max_tracks = g_value_get_uint(value);
      return true;
    case kFirstId:
      options.first_id = g_value_get_int64(value);
      return true;
    default:
      return false;
  }
}

bool get_option(const TrackerOptions& options, guint id, GValue* value) {
  switch (id) {
    case kSureScore:
      return g_value_set_float(value, options.sure_score), true;
    case kUnsureScore:
      return g_value_set_float(value, options.unsure_score), true;
    case kMatchIou:
      return g_value_set_float(value, options.match_iou), true;
    case kUnsureMatchIou:
      return g_value_set_float(value, options.unsure_match_iou), true;
    case kConfirmFrames:
      return g_value_set_uint(value, static_cast<guint>(options.confirm_frames)), true;
    case kMaxMissedFrames:
      return g_value_set_uint(value, static_cast<guint>(options.max_missed_frames)), true;
    case kPredictedFrames:
      return g_value_set_uint(value, static_cast<guint>(options.predicted_frames)), true;
    case kMaxTracks:
      return g_value_set_uint(value, static_cast<guint>(options.max_tracks)), true;
    case kFirstId:
      return g_value_set_int64(value, options.first_id), true;
    default:
      return false;
  }
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_TRACK(object);
  set_in_ready(GST_ELEMENT(self), id, spec,
               [&] { return set_option(self->core->options, id, value); });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_TRACK(object);
  GST_OBJECT_LOCK(self);
  const bool known = get_option(self->core->options, id, value);
  GST_OBJECT_UNLOCK(self);
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

void finalize(GObject* object) {
  delete PEN_TRACK(object)->core;
  G_OBJECT_CLASS(pen_track_parent_class)->finalize(object);
}

void install_properties(GObjectClass* klass) {
  const TrackerOptions initial;
  const auto add_part = [klass](guint id, const char* name, const char* nick, const char* blurb,
                                float value) {
    g_object_class_install_property(
        klass, id, g_param_spec_float(name, nick, blurb, 0, 1, value, kReadyProperty));
  };
  const auto add_count = [klass](guint id, const char* name, const char* nick, const char* blurb,
                                 guint least, guint most, guint value) {
    g_object_class_install_property(
        klass, id, g_param_spec_uint(name, nick, blurb, least, most, value, kReadyProperty));
  };
  add_part(kSureScore, "sure-score", "Sure score",
           "Confidence from which an object may begin a track", initial.sure_score);
  add_part(kUnsureScore, "unsure-score", "Unsure score",
           "Confidence from which it may continue one that has no sure object, at most sure-score; "
           "weaker ones are not looked at",
           initial.unsure_score);
  add_part(kMatchIou, "match-iou", "Overlap of a match",
           "Least overlap (IoU) of a sure object and a track's predicted place", initial.match_iou);
  add_part(kUnsureMatchIou, "unsure-match-iou", "Overlap of an unsure match",
           "Least overlap of an unsure one", initial.unsure_match_iou);
  add_count(kConfirmFrames, "confirm-frames", "Frames to confirm",
            "Detections before an object gets an id, where many new objects come to nothing; where "
            "they mostly come true it gets it at once",
            1, 1000, static_cast<guint>(initial.confirm_frames));
  add_count(kMaxMissedFrames, "max-missed-frames", "Missed frames",
            "Analysed frames without detection after which a track ends", 0, 100000,
            static_cast<guint>(initial.max_missed_frames));
  add_count(kPredictedFrames, "predicted-frames", "Predicted frames",
            "Analysed frames without detection for which an object may be told at its predicted "
            "place, at most max-missed-frames; it is where the detector mostly came back to an "
            "object that it missed for as long",
            0, 1000, static_cast<guint>(initial.predicted_frames));
  add_count(kMaxTracks, "max-tracks", "Tracks", "Tracks at a time; further objects get no id", 1,
            4096, static_cast<guint>(initial.max_tracks));
  g_object_class_install_property(
      klass, kFirstId,
      g_param_spec_int64(
          "first-id", "First id",
          "Id of the first track: where an earlier element of the same source left off", 1,
          gint64{1} << 62, initial.first_id, kReadyProperty));
}

}  // namespace

static void pen_track_class_init(PenTrackClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  auto* transform_class = GST_BASE_TRANSFORM_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  transform_class->start = start;
  transform_class->stop = stop;
  transform_class->set_caps = set_caps;
  transform_class->sink_event = sink_event;
  transform_class->transform_ip = transform;
  install_properties(object_class);
  add_any_video_pads(element_class);
  gst_element_class_set_static_metadata(
      element_class, "Penstock tracker", "Filter/Analyzer/Video",
      "Gives detected objects ids that last, without looking at pixels", "The Penstock authors");
}

static void pen_track_init(PenTrack* self) { self->core = new TrackCore; }
