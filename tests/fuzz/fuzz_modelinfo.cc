// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what other tools write about a model: both formats read or refused with a message,
// never a crash.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "penstock/model/manifest_parser.h"
#include "penstock/model/model_info.h"

namespace {

void require(bool kept) {
  if (!kept) std::abort();
}

/// What was accepted keeps the promises that preparing is built on.
void check(const penstock::Result<penstock::ModelInfo>& info) {
  using namespace penstock;
  if (!info) return require(!info.error().message().empty());
  require(info->labels.size() <= kMaxManifestLabels);
  require(info->tensors.size() <= kMaxManifestTensors);
  for (const auto& share : {info->threshold, info->iou_threshold}) {
    require(!share || (*share >= 0 && *share <= 1));
  }
  require(!info->pad || (*info->pad >= 0 && *info->pad <= 255));
  if (info->mean)
    require(std::ranges::all_of(*info->mean, [](float v) { return std::isfinite(v); }));
  if (info->std) require(std::ranges::all_of(*info->std, [](float v) { return v > 0; }));
  for (const ModelInfoTensor& tensor : info->tensors) {
    require(!tensor.name.empty() && tensor.dims.size() <= kMaxManifestRank);
    require(tensor.ranges.empty() || tensor.ranges.size() == 1 || tensor.ranges.size() == 3);
    for (const auto& [least, most] : tensor.ranges) require(least < most);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(penstock::parse_gstreamer_info(text));
  check(penstock::parse_openvino_info(text));
  return 0;
}
