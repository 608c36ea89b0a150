// SPDX-License-Identifier: Apache-2.0
//
// A model tried on one picture, as `run` would take it through: `model try` and `model prepare
// --try`.
#pragma once

#include <filesystem>
#include <optional>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"

namespace penstock {

struct TryOptions {
  std::filesystem::path picture{};
  std::filesystem::path out{};  ///< Empty: no picture is written.
  std::filesystem::path engine_library{};
  std::optional<float> threshold{}, iou_threshold{};
};

/// Prints what was found and writes the picture that was asked for.
Result<void> try_model(const Manifest& manifest, const TryOptions& options);

}  // namespace penstock
