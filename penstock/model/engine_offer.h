// SPDX-License-Identifier: Apache-2.0
//
// What an inference engine's library can do, for a user to read before a model names it.
//
//   auto offer = describe_engine("/opt/ort/libonnxruntime.so.1");
//   say(offer->version);    // "1.29.0"
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"

namespace penstock {

struct EngineOffer {
  std::string version;
  std::string library;  ///< As it was loaded.
  /// Execution providers that the library was built with, the engine's favourite first. A library
  /// offers what it was built with: whether a device for it is there shows when a model is opened.
  std::vector<std::string> providers;
};

/// Loads the ONNX Runtime `library` (empty: the build's default), which then stays loaded.
/// kNotFound when it cannot be loaded, kUnsupported when it is another library or too old.
Result<EngineOffer> describe_engine(const std::filesystem::path& library);

}  // namespace penstock
