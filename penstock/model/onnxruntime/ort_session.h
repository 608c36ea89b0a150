// SPDX-License-Identifier: Apache-2.0
//
// The ONNX Runtime engine behind Session, and what `doctor` asks of the library.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "penstock/model/session.h"

namespace penstock {

/// The engine is a CPU engine: it runs inside a device job, on the bytes that the job's Access
/// gives it, so it works on `cpu` and on `sim` alike.
Result<std::shared_ptr<Session>> open_onnxruntime_session(DevicePtr device,
                                                          const Manifest& manifest,
                                                          const SessionOptions& options);

}  // namespace penstock
