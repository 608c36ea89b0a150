// SPDX-License-Identifier: Apache-2.0
#include "gst/caps_refusal.h"

#include <utility>

namespace penstock::gst {
namespace {

GstPadProbeReturn look(GstPad*, GstPadProbeInfo* info, gpointer user_data) {
  const auto& refusal = *static_cast<CapsRefusal*>(user_data);
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
  GstCaps* caps = nullptr;
  gst_event_parse_caps(event, &caps);
  if (const auto accepted = refusal.accept(caps); !accepted) refusal.refuse(accepted.error());
  return GST_PAD_PROBE_OK;
}

}  // namespace

void name_refused_caps(GstPad* pad, CapsRefusal refusal) {
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, look,
                    new CapsRefusal(std::move(refusal)),
                    [](gpointer data) { delete static_cast<CapsRefusal*>(data); });
}

}  // namespace penstock::gst
