// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/shared_model.h"

#include "penstock/base/str_format.h"
#include "penstock/pipeline/bus_error.h"
#include "penstock/pipeline/element_settings.h"
#include "penstock/pipeline/run_graph.h"

namespace penstock {
namespace {

/// "penstock.inference": the models that are open, by instance (gst/sharing.h).
constexpr const char* kContext = "penstock.inference";

Error first_error(GstElement* pipeline) {
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR);
  gst_object_unref(bus);
  if (message == nullptr) {
    return Error(ErrorKind::kDevice, "the model does not open and does not say why");
  }
  BusError error = read_bus_error(message, Source{}, "");
  gst_message_unref(message);
  return std::move(error.error);
}

}  // namespace

Result<std::unique_ptr<SharedModel>> SharedModel::open(const RunOptions& options) {
  std::unique_ptr<SharedModel> model(new SharedModel);
  model->pipeline_ = gst_pipeline_new("model");
  gst_object_ref_sink(model->pipeline_);
  std::vector<ElementSettings> wanted{infer_settings(options)};
  wanted.insert(wanted.end(), options.stages.begin(), options.stages.end());
  for (const ElementSettings& settings : wanted) {
    auto infer = add_element(GST_BIN(model->pipeline_), settings);
    if (!infer) return std::unexpected(std::move(infer).error());
    model->infers_.push_back(*infer);
  }
  if (gst_element_set_state(model->pipeline_, GST_STATE_READY) == GST_STATE_CHANGE_FAILURE) {
    return std::unexpected(first_error(model->pipeline_));
  }
  model->context_ = gst_element_get_context(model->pipeline_, kContext);
  if (model->context_ == nullptr) {
    return fail(ErrorKind::kInternal, "peninfer does not share its model");
  }
  return model;
}

std::string SharedModel::instance_of_stage(std::size_t stage) {
  return str_format("{}-{}", kInstance, stage);
}

SharedModel::~SharedModel() {
  if (context_ != nullptr) gst_context_unref(context_);
  if (pipeline_ == nullptr) return;
  gst_element_set_state(pipeline_, GST_STATE_NULL);
  gst_object_unref(pipeline_);
}

void SharedModel::share(GstElement* pipeline) const { gst_element_set_context(pipeline, context_); }

}  // namespace penstock
