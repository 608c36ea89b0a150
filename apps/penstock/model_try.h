// SPDX-License-Identifier: Apache-2.0
//
// A model tried on one picture, as `run` would take it through: `model try` and `model prepare
// --try`.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "apps/penstock/engine_flags.h"
#include "penstock/base/error.h"
#include "penstock/base/output_error.h"
#include "penstock/model/manifest.h"

namespace penstock {

struct TryOptions {
  std::filesystem::path picture{};
  std::filesystem::path out{};                      ///< Empty: no picture is written.
  std::vector<std::filesystem::path> read_files{};  ///< What `out` must not be, beside `picture`.
  EngineFlags engine{};
  std::optional<float> threshold{}, iou_threshold{};
  bool is_new = false;  ///< Finding nothing may come of how the model is being prepared: say so.
};

/// kInvalidArgument when `out` is no name of a picture, or is a file that is read.
Result<void> check_outputs(const TryOptions& options);

/// Prints what was found and writes the picture that was asked for.
Result<void, OutputError> try_model(const Manifest& manifest, const TryOptions& options);

}  // namespace penstock
