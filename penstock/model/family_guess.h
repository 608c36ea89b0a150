// SPDX-License-Identifier: Apache-2.0
//
// Which detector family a model's outputs look like, from their shapes alone, and what such models
// usually take. Facts: docs/manifest.md, families.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/media/preprocessor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

struct GuessInput {
  int width = 0, height = 0;  ///< Of the model's input.
  std::size_t labels = 0;     ///< 0: not known.
  std::span<const TensorSpec> outputs;
};

struct FamilyGuess {
  std::string family;
  std::size_t classes = 0;  ///< 0: the shapes don't tell.
  std::string reason;       ///< For the user: which output, which shape.
};

/// kUnsupported lists the outputs.
Result<FamilyGuess> guess_family(const GuessInput& input);

/// What the family's usual exporters take; nothing where they differ.
std::optional<PreprocessSpec> family_preprocess(std::string_view family);

/// "{0: 'person', 1: 'car'}" as Ultralytics writes it: the values in the order of keys 0, 1, ...;
/// empty when it is anything else.
std::vector<std::string> labels_of_dictionary(std::string_view text);

/// The unsigned integers of "[640, 480]", each at most 65536; at most 8.
std::vector<int> integers_in(std::string_view text);

}  // namespace penstock
