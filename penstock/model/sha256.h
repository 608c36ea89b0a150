// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 as lower-case hex, of bytes in memory (sha256_file in manifest.h streams a file).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "penstock/base/error.h"

namespace penstock {

Result<std::string> sha256_hex(std::span<const std::byte> bytes);

}  // namespace penstock
