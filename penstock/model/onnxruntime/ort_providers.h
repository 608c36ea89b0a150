// SPDX-License-Identifier: Apache-2.0
//
// Execution providers: what a library of ONNX Runtime offers, and the one that a session gets. A
// provider is built into the library or comes from a library of its own (a plugin). It is chosen
// by name; that it is absent is an error that lists what there is (contract M05).
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"
#include "penstock/model/onnxruntime/ort_runtime.h"

namespace penstock {

struct ProviderChoice {
  std::string name{kCpuProvider};
  /// As the provider documents them.
  std::vector<std::pair<std::string, std::string>> options{};
  std::filesystem::path library{};  ///< Of a plugin; empty: built in, or registered before.
};

/// Adds the provider to `target`. kNotFound: neither built in nor a plugin's; kInvalidArgument: the
/// CPU provider with options, which it has none of.
Result<void> append_provider(OrtRuntime& runtime, const ProviderChoice& choice,
                             OrtSessionOptions* target);

/// Names of the providers built into the library, and of those that plugins registered for devices
/// that are there.
Result<std::vector<std::string>> offered_providers(const OrtRuntime& runtime);

}  // namespace penstock
