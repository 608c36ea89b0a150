// SPDX-License-Identifier: Apache-2.0
#include "gst/peninfer.h"

struct _PenInfer {
  GstElement parent;
};
G_DEFINE_TYPE(PenInfer, pen_infer, GST_TYPE_ELEMENT)
static void pen_infer_class_init(PenInferClass*) {}
static void pen_infer_init(PenInfer*) {}
