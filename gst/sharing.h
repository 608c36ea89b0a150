// SPDX-License-Identifier: Apache-2.0
//
// What elements share goes by GstContext: "penstock.device" carries a Device (the application's, or
// the test plugin's simulated one), "penstock.inference" the models opened under a model-instance
// name. The bin of the elements remembers both.
#pragma once

#include <gst/gst.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "gst/gst_ptr.h"
#include "penstock/base/error.h"
#include "penstock/exec/frame_inference.h"
#include "penstock/memory/device.h"

namespace penstock::gst {

inline constexpr char kDeviceContext[] = "penstock.device";
inline constexpr char kInferenceContext[] = "penstock.inference";

using ContextPtr = GstPtr<GstContext>;

/// A context to gst_element_set_context() on an element or a whole pipeline.
__attribute__((visibility("default"))) ContextPtr make_device_context(DevicePtr device);
/// Null when `context` is null or carries no device.
__attribute__((visibility("default"))) DevicePtr device_of(const GstContext* context);

/// Looks for a context where GStreamer's rules say: set on the element, known to a neighbour, asked
/// of the application and the bins (NEED_CONTEXT). Null when nobody has it.
__attribute__((visibility("default"))) ContextPtr find_context(GstElement* element,
                                                               const char* type);
/// Keeps `context` on the element and tells its bins (HAVE_CONTEXT).
__attribute__((visibility("default"))) void publish_context(GstElement* element,
                                                            GstContext* context);

/// A model that is open on its device.
struct OpenedInference {
  OpenedInference(DevicePtr where, std::unique_ptr<FrameInference> what)
      : device(std::move(where)), inference(std::move(what)) {}
  /// The last user has gone, and with it whoever wanted what still runs.
  ~OpenedInference() {
    if (inference != nullptr) inference->interrupt();
  }
  OpenedInference(const OpenedInference&) = delete;
  OpenedInference& operator=(const OpenedInference&) = delete;

  DevicePtr device;
  std::unique_ptr<FrameInference> inference;
};
using OpenedInferencePtr = std::shared_ptr<OpenedInference>;

/// Models by instance name. An entry lives as long as an element uses it. Thread-safe.
class InferenceRegistry {
 public:
  using Opener = std::function<Result<OpenedInferencePtr>()>;

  /// The living inference called `instance`, else the one that `open` makes. `settings` describes
  /// what it was made of; kInvalidArgument when the living one was made of others and somebody else
  /// uses it. `held` is what the caller had open so far: it is let go of before another is made.
  Result<OpenedInferencePtr> open(const std::string& instance, const std::string& settings,
                                  OpenedInferencePtr held, const Opener& open);

 private:
  struct Entry {
    std::string settings;
    std::weak_ptr<OpenedInference> inference;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

/// The registry of the element's pipeline, made and published by the first that asks.
std::shared_ptr<InferenceRegistry> shared_registry(GstElement* element);

}  // namespace penstock::gst
