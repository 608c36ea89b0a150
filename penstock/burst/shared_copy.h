// SPDX-License-Identifier: Apache-2.0
//
// Copies between private memory and memory that another process may change at any moment. The
// shared side is touched by relaxed atomic loads and stores, each byte once: the compiler can't
// read it a second time after the value was checked, and a racing writer is no undefined behaviour.
#pragma once

#include <cstddef>

namespace penstock {

void copy_from_shared(std::byte* to, const std::byte* shared, std::size_t size);
void copy_to_shared(std::byte* shared, const std::byte* from, std::size_t size);

}  // namespace penstock
