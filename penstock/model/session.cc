// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/session.h"

#include "penstock/base/str_format.h"
#include "penstock/model/onnxruntime/ort_session.h"

namespace penstock {

Result<std::shared_ptr<Session>> open_session(DevicePtr device, const Manifest& manifest,
                                              const SessionOptions& options) {
  if (!device) return fail(ErrorKind::kInvalidArgument, "a session needs a device");
  if (manifest.engine == "onnxruntime") {
    return open_onnxruntime_session(std::move(device), manifest, options);
  }
  return fail(ErrorKind::kUnsupported,
              str_format("model '{}': this build has no engine '{}'; it has: onnxruntime",
                         manifest.name, manifest.engine));
}

}  // namespace penstock
