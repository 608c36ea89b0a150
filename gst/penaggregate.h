// SPDX-License-Identifier: Apache-2.0
//
// penaggregate: one frame that went several ways goes on with the metadata of all of them.
// docs/elements.md describes it.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_AGGREGATE (pen_aggregate_get_type())
G_DECLARE_FINAL_TYPE(PenAggregate, pen_aggregate, PEN, AGGREGATE, GstElement)
G_END_DECLS
