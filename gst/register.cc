// SPDX-License-Identifier: Apache-2.0
#include "gst/register.h"

#include "gst/penaggregate.h"
#include "gst/pendemux.h"
#include "gst/peninfer.h"
#include "gst/penmux.h"
#include "gst/pentrack.h"
#include "gst/penwatermark.h"
#include "gst/penzone.h"

namespace penstock::gst {

bool register_elements(GstPlugin* plugin) {
  return gst_element_register(plugin, "penaggregate", GST_RANK_NONE, PEN_TYPE_AGGREGATE) &&
         gst_element_register(plugin, "pendemux", GST_RANK_NONE, PEN_TYPE_DEMUX) &&
         gst_element_register(plugin, "peninfer", GST_RANK_NONE, PEN_TYPE_INFER) &&
         gst_element_register(plugin, "penmux", GST_RANK_NONE, PEN_TYPE_MUX) &&
         gst_element_register(plugin, "pentrack", GST_RANK_NONE, PEN_TYPE_TRACK) &&
         gst_element_register(plugin, "penwatermark", GST_RANK_NONE, PEN_TYPE_WATERMARK) &&
         gst_element_register(plugin, "penzone", GST_RANK_NONE, PEN_TYPE_ZONE);
}

}  // namespace penstock::gst
