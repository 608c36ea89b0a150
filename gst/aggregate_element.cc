// SPDX-License-Identifier: Apache-2.0
#include "gst/aggregate_element.h"

#include "gst/allocation.h"

namespace penstock::gst {
namespace {

/// One in the queue's place beside it, and one that is being pushed or read.
guint frames_held(PenAggregate* self) {
  GST_OBJECT_LOCK(self);
  const guint held = self->core->queue_depth + 2;
  GST_OBJECT_UNLOCK(self);
  return held;
}

}  // namespace

std::shared_ptr<BranchJoin> join_of(PenAggregate* self) {
  GST_OBJECT_LOCK(self);
  auto join = self->core->join;
  GST_OBJECT_UNLOCK(self);
  return join;
}

BranchJoin::Key key_of(GstPad* pad) { return GPOINTER_TO_UINT(gst_pad_get_element_private(pad)); }

bool is_primary(GstPad* pad) { return g_strcmp0(GST_OBJECT_NAME(pad), kPrimaryPad) == 0; }

GstPtr<GstPad> primary_pad(PenAggregate* self) {
  return GstPtr<GstPad>(gst_element_get_static_pad(GST_ELEMENT(self), kPrimaryPad));
}

gboolean add_own_frames(PenAggregate* self, GstQuery* query) {
  GstCaps* caps = nullptr;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (caps == nullptr || gst_caps_get_size(caps) == 0) return FALSE;
  const bool system = gst_caps_features_contains(gst_caps_get_features(caps, 0),
                                                 GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY);
  add_held_frames(query, frames_held(self), system ? DeviceKind::kCpu : DeviceKind::kSim);
  return TRUE;
}

gboolean answer_caps(GstPad* pad, GstPad* across, GstQuery* query) {
  GstCaps* filter = nullptr;
  gst_query_parse_caps(query, &filter);
  const CapsPtr own(gst_pad_get_pad_template_caps(pad));
  const CapsPtr asked(across == nullptr ? gst_caps_ref(own.get())
                                        : gst_pad_peer_query_caps(across, filter));
  const CapsPtr answer(gst_caps_intersect_full(asked.get(), own.get(), GST_CAPS_INTERSECT_FIRST));
  const CapsPtr filtered(
      filter == nullptr ? gst_caps_ref(answer.get())
                        : gst_caps_intersect_full(filter, answer.get(), GST_CAPS_INTERSECT_FIRST));
  gst_query_set_caps_result(query, filtered.get());
  return TRUE;
}

}  // namespace penstock::gst
