// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a manifest: parsed or refused with one line that names a field, never a crash.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "penstock/model/manifest_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const auto document = parse_manifest({reinterpret_cast<const char*>(data), size});
  if (!document) {
    if (document.error().message().empty()) std::abort();
    return 0;
  }
  // What was accepted keeps the promises that later code is built on.
  const Manifest& manifest = document->manifest;
  int models = 0;
  for (const ManifestArtefact& artefact : document->artefacts) {
    models += artefact.is_model ? 1 : 0;
    if (artefact.path.empty() || artefact.sha256.size() != 64) std::abort();
  }
  if (models != 1 || manifest.name.empty() || manifest.labels.size() > kMaxManifestLabels) {
    std::abort();
  }
  for (const auto* tensors : {&manifest.inputs, &manifest.outputs}) {
    if (tensors->size() > kMaxManifestTensors) std::abort();
    for (const TensorSpec& spec : *tensors) {
      if (spec.name.empty() || spec.dims.size() > kMaxManifestRank) std::abort();
      for (const Dimension& dim : spec.dims) {
        if (dim.minimum < 1 || dim.maximum < dim.minimum) std::abort();
      }
    }
  }
  return 0;
}
