// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_element.h"

#include <cstddef>

#include "gst/bus_error.h"

namespace penstock::gst {
namespace {

std::string device_name(PenInfer* self) {
  const ObjectLock lock(self);
  return self->core->config.device;
}

/// What may come in or go out: the device's video, as far as the other side takes it too.
CapsPtr possible_caps(PenInfer* self, GstPad* other, GstCaps* filter) {
  CapsPtr own = input_caps(device_id(self).kind);
  CapsPtr peer(gst_pad_peer_query_caps(other, own.get()));
  CapsPtr caps(gst_caps_intersect_full(peer.get(), own.get(), GST_CAPS_INTERSECT_FIRST));
  if (filter == nullptr) return caps;
  return CapsPtr(gst_caps_intersect_full(filter, caps.get(), GST_CAPS_INTERSECT_FIRST));
}

}  // namespace

std::shared_ptr<InferStream> stream_of(PenInfer* self) {
  const ObjectLock lock(self);
  return self->core->stream;
}

DeviceId device_id(PenInfer* self) {
  return parse_device_id(device_name(self)).value_or(DeviceId{});
}

std::size_t frame_limit(const InferConfig& config, const FrameInference& inference) {
  return std::size_t{config.queue_depth} + static_cast<std::size_t>(inference.workers());
}

void report(PenInfer* self, InferStream& stream, const char* operation, const Error& error) {
  if (!stream.claim_failure()) return;
  post_error(GST_ELEMENT(self), device_name(self), operation, error);
}

void warn(PenInfer* self, const char* operation, const Error& error) {
  post_warning(GST_ELEMENT(self), device_name(self), operation, error);
}

void fail_stream(PenInfer* self, InferStream& stream, const char* operation, const Error& error) {
  report(self, stream, operation, error);
  stream.end(GST_FLOW_ERROR);
}

void report_downstream(PenInfer* self, InferStream& stream, GstFlowReturn flow) {
  if (stream.claim_failure()) GST_ELEMENT_FLOW_ERROR(self, flow);
}

gboolean answer_caps(PenInfer* self, GstPad* other, GstQuery* query) {
  GstCaps* filter = nullptr;
  gst_query_parse_caps(query, &filter);
  const CapsPtr caps = possible_caps(self, other, filter);
  gst_query_set_caps_result(query, caps.get());
  return TRUE;
}

}  // namespace penstock::gst
