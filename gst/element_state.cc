// SPDX-License-Identifier: Apache-2.0
#include "gst/element_state.h"

namespace penstock::gst {
namespace {

/// Above READY, or on the way there. Needs the element's object lock.
bool is_running(GstElement* element) {
  if (GST_STATE(element) > GST_STATE_READY) return true;
  // A change that failed leaves its aim standing.
  return GST_STATE_NEXT(element) > GST_STATE_READY &&
         GST_STATE_RETURN(element) != GST_STATE_CHANGE_FAILURE;
}

}  // namespace

void set_in_ready(GstElement* element, guint id, GParamSpec* property,
                  const std::function<bool()>& set) {
  GST_OBJECT_LOCK(element);
  const bool running = is_running(element);
  const bool known = running || set();
  GST_OBJECT_UNLOCK(element);
  if (running) {
    g_warning("%s: property '%s' can only be set in NULL and READY", GST_OBJECT_NAME(element),
              property->name);
  }
  if (!known) G_OBJECT_WARN_INVALID_PROPERTY_ID(element, id, property);
}

}  // namespace penstock::gst
