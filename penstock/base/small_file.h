// SPDX-License-Identifier: Apache-2.0
//
// Reads a small text that anybody may have put there: a manifest, a list of labels, a pipeline.
//
//   auto text = read_small_file("labels.txt", std::size_t{1} << 20);
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "penstock/base/error.h"

namespace penstock {

/// All of the regular file `path`, at most `limit` bytes. Waits for nobody: a FIFO or a device is
/// kInvalidArgument. kCorrupt when there are more bytes, kNotFound when there is no such file,
/// kPermission and kIo as the system says.
Result<std::string> read_small_file(const std::filesystem::path& path, std::size_t limit);

}  // namespace penstock
