// SPDX-License-Identifier: Apache-2.0
//
// Arrays as NumPy stores them (.npy, versions 1 to 3), for reference inputs and results of a model:
// float32 in C order, nothing else. The bytes are not trusted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/tensor.h"

namespace penstock {

struct NpyArray {
  Shape shape;
  std::vector<float> values;  ///< As many as the shape says.
};

/// kCorrupt: no .npy, or its size is not what its shape says. kUnsupported: another type or order.
Result<NpyArray> parse_npy(std::span<const std::byte> bytes);
/// The same for a file of at most 1 GiB.
Result<NpyArray> read_npy(const std::filesystem::path& path);

}  // namespace penstock
