// SPDX-License-Identifier: Apache-2.0
//
// Outputs that harm no file: whether one is a file that is read, which is asked before anything is
// written, and files that appear whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "penstock/base/output_error.h"

namespace penstock {

/// Where creating `path` would put the file: links are followed, also one to nothing.
std::filesystem::path place_of(std::filesystem::path path);

/// True when writing one would destroy the other, under whatever name (path, hard link, symbolic
/// link). Devices and pipes are no files that are destroyed.
bool same_file(const std::filesystem::path& one, const std::filesystem::path& other);

/// What creating or truncating `path` would say now, without doing it: kNotFound without its
/// folder, kIo for a folder or what may not be written to.
Result<void> check_creatable(const std::filesystem::path& path);

/// `bytes` as the file at `path`, written beside it and renamed: whatever goes wrong, the file that
/// was there stays. A device or pipe is written to as it is.
Result<void, OutputError> replace_file(const std::filesystem::path& path,
                                       std::span<const std::byte> bytes);

}  // namespace penstock
