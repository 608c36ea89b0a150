// SPDX-License-Identifier: Apache-2.0
#include "gst/element_state.h"

namespace penstock::gst {

bool is_running(GstElement* element) {
  if (GST_STATE(element) > GST_STATE_READY) return true;
  // A change that failed leaves its aim standing.
  return GST_STATE_NEXT(element) > GST_STATE_READY &&
         GST_STATE_RETURN(element) != GST_STATE_CHANGE_FAILURE;
}

void warn_unchanged(GstElement* element, const GParamSpec* property) {
  g_warning("%s: property '%s' can only be set in NULL and READY", GST_OBJECT_NAME(element),
            property->name);
}

}  // namespace penstock::gst
