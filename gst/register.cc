// SPDX-License-Identifier: Apache-2.0
#include "gst/register.h"

#include "gst/peninfer.h"

namespace penstock::gst {

bool register_elements(GstPlugin* plugin) {
  return gst_element_register(plugin, "peninfer", GST_RANK_NONE, PEN_TYPE_INFER);
}

}  // namespace penstock::gst
