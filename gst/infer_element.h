// SPDX-License-Identifier: Apache-2.0
//
// The inside of a PenInfer that its parts share: infer_sink_pad, infer_src_pad, and peninfer.cc for
// the class, its properties and its states.
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "gst/container_caps.h"
#include "gst/gst_ptr.h"
#include "gst/infer_config.h"
#include "gst/infer_stream.h"
#include "gst/peninfer.h"
#include "gst/sharing.h"
#include "penstock/base/error.h"

namespace penstock::gst {

/// The C++ side of a PenInfer. Fields marked (O) are guarded by the object lock.
struct InferCore {
  InferConfig config;                   // (O)
  InferConfig opened_config;            // Written by the state-change thread only, under (O).
  OpenedInferencePtr opened;            // (O)
  std::shared_ptr<InferStream> stream;  // (O)
  std::optional<InputFormat> format;    // (O) Of what comes in.
  bool refused = false;                 // Sink thread: takes nothing more, and has said why.
};

}  // namespace penstock::gst

struct _PenInfer {
  GstElement parent;
  GstPad* sinkpad;
  GstPad* srcpad;
  penstock::gst::InferCore* core;
};

namespace penstock::gst {

class ObjectLock {
 public:
  explicit ObjectLock(PenInfer* self) : self_(self) { GST_OBJECT_LOCK(self_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;
  ~ObjectLock() { GST_OBJECT_UNLOCK(self_); }

 private:
  PenInfer* self_;
};

std::shared_ptr<InferStream> stream_of(PenInfer* self);
/// Posts a warning, after which the element goes on.
void warn(PenInfer* self, const char* operation, const Error& error);

/// The configured device, `cpu` while the property holds nonsense (which READY refuses).
DeviceId device_id(PenInfer* self);

/// Frames the element holds at most, without the one that waits for its place.
std::size_t frame_limit(const InferConfig& config, const FrameInference& inference);

/// A flow that ends the stream for a reason which nobody but the element is left to tell.
inline bool is_failure(GstFlowReturn flow) {
  return flow == GST_FLOW_NOT_LINKED || flow < GST_FLOW_EOS;
}

/// Posts `error` with the configured device's name, unless the stream has had its one error.
void report(PenInfer* self, InferStream& stream, const char* operation, const Error& error);

/// Reports, and then ends the stream.
void fail_stream(PenInfer* self, InferStream& stream, const char* operation, const Error& error);

/// Posts, on the same condition, what every element says that stops on downstream's account.
void report_downstream(PenInfer* self, InferStream& stream, GstFlowReturn flow);

/// Answers a CAPS query: the device's caps, as far as the peer of `other` takes them too.
gboolean answer_caps(PenInfer* self, GstPad* other, GstQuery* query);

}  // namespace penstock::gst
