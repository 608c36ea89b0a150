// SPDX-License-Identifier: Apache-2.0
//
// peninfer: object detection on video frames, in place. Frames go out in the order they came in, in
// the memory they came in, with GstAnalytics object relations and PenAnalysisMeta. Inference runs
// asynchronously inside the element; docs/elements.md describes properties, caps and behaviour.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS
#define PEN_TYPE_INFER (pen_infer_get_type())
G_DECLARE_FINAL_TYPE(PenInfer, pen_infer, PEN, INFER, GstElement)
G_END_DECLS
