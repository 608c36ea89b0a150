// SPDX-License-Identifier: Apache-2.0
//
// Colours over a picture's pixels: those of objects' masks and of a class map.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/penstock/picture_file.h"
#include "penstock/base/error.h"
#include "penstock/records/records.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

using Rgb = std::array<std::uint8_t, 3>;
Rgb color_of(int class_id);

/// Half of each pixel of an object's mask, or of a class, becomes the colour of the class; what
/// `labels` call "background" keeps its own. Waits for `regions`, whose memory the host must see
/// (that of `cpu`): kUnsupported otherwise.
Result<void> color_regions(Picture& picture, const DeviceFindings& regions,
                           std::span<const Detection> objects,
                           const std::vector<std::string>& labels);

}  // namespace penstock
