// SPDX-License-Identifier: Apache-2.0
//
// Whether a prepared model, in the engine that will run it, gives the results that somebody else
// computed: a conversion is checked against the framework that it came from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/session.h"

namespace penstock {

struct OutputDifference {
  std::string output;
  double largest = 0;  ///< Of the absolute differences; infinite when either side has a NaN.
  double scale = 0;    ///< The largest absolute value of the reference.
};

/// Runs the model on `cpu` with `folder`/in.NAME.npy for every input and compares every output with
/// `folder`/out.NAME.npy (NAME is the tensor's, '/' and ':' as '_'). kCorrupt: an output has
/// another shape than its reference. Model inputs and outputs other than float32 are kUnsupported.
Result<std::vector<OutputDifference>> compare_with_reference(const Manifest& manifest,
                                                             const std::filesystem::path& folder,
                                                             const SessionOptions& options = {});

}  // namespace penstock
