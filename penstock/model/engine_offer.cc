// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/engine_offer.h"

#include "penstock/model/onnxruntime/ort_runtime.h"

namespace penstock {

Result<EngineOffer> describe_engine(const std::filesystem::path& library) {
  const auto runtime = OrtRuntime::open(library);
  if (!runtime) return std::unexpected(runtime.error());
  auto providers = (*runtime)->providers();
  if (!providers) return std::unexpected(providers.error());
  return EngineOffer{.version = (*runtime)->version(),
                     .library = (*runtime)->library(),
                     .providers = *std::move(providers)};
}

}  // namespace penstock
