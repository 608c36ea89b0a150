// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ONNX file: summed up or refused, in memory linear in its size.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "penstock/model/onnx_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const auto summary = read_onnx_summary(std::as_bytes(std::span(data, size)));
  if (!summary && summary.error().message().empty()) std::abort();
  return 0;
}
