// SPDX-License-Identifier: Apache-2.0
//
// ONNX Runtime alone, for the `limit` of bench pipeline: one session, one single-threaded run per
// worker, inputs and outputs bound once, nothing between two runs. What no pipeline can beat.
#pragma once

#include <filesystem>
#include <memory>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"

namespace penstock::bench {

class RawInference {
 public:
  static Result<std::unique_ptr<RawInference>> open(const std::filesystem::path& library,
                                                    const Manifest& manifest, int workers);
  virtual ~RawInference() = default;
  /// One run; `worker` is used by one thread at a time.
  virtual Result<void> run(int worker) = 0;
};

}  // namespace penstock::bench
