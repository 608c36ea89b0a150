// SPDX-License-Identifier: Apache-2.0
#include "gst/peninfer.h"

#include <memory>
#include <string>
#include <utility>

#include "gst/bus_error.h"
#include "gst/element_state.h"
#include "gst/infer_config.h"
#include "gst/infer_element.h"
#include "gst/infer_sink_pad.h"
#include "gst/infer_src_pad.h"
#include "gst/infer_stats.h"
#include "gst/infer_stream.h"

GST_DEBUG_CATEGORY_STATIC(pen_infer_debug);
#define GST_CAT_DEFAULT pen_infer_debug

using namespace penstock;
using namespace penstock::gst;

namespace {

enum : guint { kStats = kFirstOwnProperty };

GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE("sink", GST_PAD_SINK, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw, format={NV12,I420}; "
                                            "video/x-raw(memory:PenstockSim), format=NV12; "
                                            "multistream/x-analytics-batch("
                                            "meta:GstAnalyticsBatchMeta)"));
GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                            GST_STATIC_CAPS("video/x-raw, format={NV12,I420}; "
                                            "video/x-raw(memory:PenstockSim), format=NV12; "
                                            "multistream/x-analytics-batch("
                                            "meta:GstAnalyticsBatchMeta)"));

}  // namespace

G_DEFINE_TYPE(PenInfer, pen_infer, GST_TYPE_ELEMENT)

namespace {

bool open_model(PenInfer* self) {
  InferConfig config;
  OpenedInferencePtr held;
  {
    const ObjectLock lock(self);
    config = self->core->config;
    if (self->core->opened != nullptr && self->core->opened_config == config) return true;
    held = std::move(self->core->opened);
  }
  auto opened = open_inference(GST_ELEMENT(self), config, std::move(held));
  if (!opened) {
    const std::string operation = "opening model '" + config.model + "'";
    post_error(GST_ELEMENT(self), config.device, operation, opened.error());
    return false;
  }
  const ObjectLock lock(self);
  self->core->opened = std::move(*opened);
  self->core->opened_config = config;
  return true;
}

void start_stream(PenInfer* self) {
  const ObjectLock lock(self);
  InferCore& core = *self->core;
  core.format.reset();
  core.refused = false;
  InferStream::Options options{
      .executor =
          std::shared_ptr<SharedBatchExecutor>(core.opened, &core.opened->inference->executor()),
      .device = core.opened->device->id(),
      .frame_limit = frame_limit(core.opened_config, *core.opened->inference),
      .interval = core.opened_config.interval};
  choose_regions(core.opened_config, core.opened->inference->manifest(), options);
  core.stream = std::make_shared<InferStream>(options);
}

void stop_stream(PenInfer* self) {
  std::shared_ptr<InferStream> stream;
  const ObjectLock lock(self);
  stream.swap(self->core->stream);
}

void close_model(PenInfer* self) {
  OpenedInferencePtr opened;
  {
    const ObjectLock lock(self);
    opened.swap(self->core->opened);
  }
}

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  auto* self = PEN_INFER(element);
  switch (transition) {
    case GST_STATE_CHANGE_NULL_TO_READY:
      if (!open_model(self)) return GST_STATE_CHANGE_FAILURE;
      break;
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      // Properties may have changed in READY.
      if (!open_model(self)) return GST_STATE_CHANGE_FAILURE;
      start_stream(self);
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      if (const auto stream = stream_of(self)) stream->interrupt();
      break;
    default:
      break;
  }
  const GstStateChangeReturn result =
      GST_ELEMENT_CLASS(pen_infer_parent_class)->change_state(element, transition);
  switch (transition) {
    case GST_STATE_CHANGE_READY_TO_PAUSED:
      if (result == GST_STATE_CHANGE_FAILURE) stop_stream(self);
      break;
    case GST_STATE_CHANGE_PAUSED_TO_READY:
      stop_stream(self);
      break;
    case GST_STATE_CHANGE_READY_TO_NULL:
      close_model(self);
      break;
    default:
      break;
  }
  return result;
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  auto* self = PEN_INFER(object);
  set_in_ready(GST_ELEMENT(self), id, spec,
               [&] { return set_config_property(self->core->config, id, value); });
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  auto* self = PEN_INFER(object);
  if (id == kStats) {
    // Under the lock, so that who polls never is the last to hold the model.
    const ObjectLock lock(self);
    const InferCore& core = *self->core;
    g_value_take_boxed(value, make_stats(core.stream.get(), core.opened.get()).release());
    return;
  }
  const ObjectLock lock(self);
  if (!get_config_property(self->core->config, id, value)) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void finalize(GObject* object) {
  delete PEN_INFER(object)->core;
  G_OBJECT_CLASS(pen_infer_parent_class)->finalize(object);
}

}  // namespace

static void pen_infer_class_init(PenInferClass* klass) {
  auto* object_class = G_OBJECT_CLASS(klass);
  auto* element_class = GST_ELEMENT_CLASS(klass);
  object_class->set_property = set_property;
  object_class->get_property = get_property;
  object_class->finalize = finalize;
  element_class->change_state = change_state;
  install_config_properties(object_class);
  g_object_class_install_property(
      object_class, kStats,
      g_param_spec_boxed("stats", "Statistics", "Figures so far, below", GST_TYPE_STRUCTURE,
                         static_cast<GParamFlags>(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS)));
  gst_element_class_add_static_pad_template(element_class, &sink_template);
  gst_element_class_add_static_pad_template(element_class, &src_template);
  gst_element_class_set_static_metadata(
      element_class, "Penstock inference", "Filter/Analyzer/Video",
      "Runs a model on video frames, in the frames' own memory", "The Penstock authors");
  GST_DEBUG_CATEGORY_INIT(pen_infer_debug, "peninfer", 0, "Penstock inference");
}

static void pen_infer_init(PenInfer* self) {
  self->core = new InferCore;
  self->sinkpad = new_sink_pad(self, &sink_template);
  gst_element_add_pad(GST_ELEMENT(self), self->sinkpad);
  self->srcpad = new_src_pad(&src_template);
  gst_element_add_pad(GST_ELEMENT(self), self->srcpad);
}
