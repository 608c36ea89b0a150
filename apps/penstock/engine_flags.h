// SPDX-License-Identifier: Apache-2.0
//
// Which code runs a model: the flags of every command that opens one. Only who runs the command
// chooses it; a manifest can't.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace penstock {

struct EngineFlags {
  std::string library{};           ///< Empty: the build's default.
  std::string provider_library{};  ///< Empty: only providers that are built into the engine.
};

inline void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option("--engine-library", flags.library, "The ONNX Runtime library to load");
  command.add_option("--provider-library", flags.provider_library,
                     "Library of an execution provider that is not built into ONNX Runtime; the "
                     "model's manifest names the provider");
}

}  // namespace penstock
