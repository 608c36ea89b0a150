// SPDX-License-Identifier: Apache-2.0
//
// Outputs as the families' models give them at their real sizes, for bench decode: a few dozen
// objects, each with a handful of boxes around it, and thousands of rows of background.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/memory/tensor.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {

struct ModelOutputs {
  std::string family;
  int input = 640;  ///< Pixels a side.
  int classes = 80;
  std::vector<Shape> shapes;
  std::vector<std::vector<float>> values;

  Manifest manifest() const;
};

/// kInvalidArgument never: the families are those of bench decode, in the order of its rows.
std::vector<ModelOutputs> make_model_outputs();

}  // namespace penstock::bench
