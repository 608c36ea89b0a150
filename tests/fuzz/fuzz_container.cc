// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a video file: what is missing of it is a size that a file can have, found by reading
// headers that lie in it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>

#include "penstock/pipeline/container_size.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::span<const std::uint8_t> bytes(data, size);
  int reads = 0;
  const std::uint64_t missing = missing_bytes(
      [&](std::uint64_t offset, std::span<unsigned char> to) {
        if (++reads > kMaxContainerHeaders + 1) std::abort();
        if (to.empty() || offset >= size || to.size() > size - offset) std::abort();
        std::ranges::copy(bytes.subspan(offset, to.size()), to.begin());
        return to.size();
      },
      size);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (missing > kMost - size) std::abort();
  return 0;
}
