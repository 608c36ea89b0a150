// SPDX-License-Identifier: Apache-2.0
//
// A pipeline of a benchmark, and what it says of its end.
#pragma once

#include <gst/gst.h>

#include <memory>
#include <optional>
#include <string>

#include "gst/gst_ptr.h"
#include "penstock/base/error.h"

namespace penstock::bench {

/// Stopped wherever its user returns.
struct StopPipeline {
  void operator()(GstElement* pipeline) const {
    gst_element_set_state(pipeline, GST_STATE_NULL);
    gst_object_unref(pipeline);
  }
};
using PipelinePtr = std::unique_ptr<GstElement, StopPipeline>;

inline std::string text_of_error(GstMessage* message) {
  GError* cause = nullptr;
  gst_message_parse_error(message, &cause, nullptr);
  std::string text = cause->message;
  g_error_free(cause);
  return text;
}

/// The first error on the bus so far.
inline std::optional<std::string> error_of(GstElement* pipeline) {
  const gst::GstPtr<GstBus> bus(gst_element_get_bus(pipeline));
  const gst::GstPtr<GstMessage> message(gst_bus_pop_filtered(bus.get(), GST_MESSAGE_ERROR));
  if (message == nullptr) return std::nullopt;
  return text_of_error(message.get());
}

/// Until all streams have ended; kDevice with what a first one failed for.
inline Result<void> await_end(GstElement* pipeline) {
  const gst::GstPtr<GstBus> bus(gst_element_get_bus(pipeline));
  const gst::GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
      bus.get(), GST_CLOCK_TIME_NONE, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
  if (GST_MESSAGE_TYPE(message.get()) == GST_MESSAGE_EOS) return {};
  return fail(ErrorKind::kDevice, text_of_error(message.get()));
}

}  // namespace penstock::bench
