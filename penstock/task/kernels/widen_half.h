// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

/// `count` halves (IEEE binary16, by their bits) as floats, exactly. Dispatched at run time to the
/// best vector instructions of the processor.
void widen_half(const std::uint16_t* halves, std::size_t count, float* floats);

}  // namespace penstock
