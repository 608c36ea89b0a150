// SPDX-License-Identifier: Apache-2.0
//
// External data: weights that a model has in other files. The engine never opens such a file: each
// must be one that the manifest names, is read once, has the manifest's hash, and these very bytes
// are handed over. A file that is swapped or rewritten meanwhile is therefore not what runs.
//
//   auto data = OrtExternalData::read(summary, manifest, model);
//   PENSTOCK_TRY(data->add_to(runtime, options));  // then create the session, then drop `data`
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/model/manifest.h"
#include "penstock/model/onnx_reader.h"
#include "penstock/model/onnxruntime/ort_runtime.h"

namespace penstock {

/// Of all of a model's external data together, which is in memory while it loads.
inline constexpr std::size_t kMaxExternalBytes = std::size_t{16} << 30;

class OrtExternalData {
 public:
  /// kCorrupt: a location that is no data of the manifest (`./w.bin` is `w.bin`), or bytes that
  /// changed. kUnsupported: data that the engine would read by itself, or more than
  /// kMaxExternalBytes. ONNX Runtime takes names in their normal form, but looks for them as the
  /// model writes them: in `model`, whose summary this is, other spellings are replaced by names of
  /// the same length.
  static Result<OrtExternalData> read(const OnnxSummary& summary, const Manifest& manifest,
                                      std::span<std::byte> model);

  /// For the sessions made with `target`, which copy the bytes: this lives until they are made.
  Result<void> add_to(const OrtRuntime& runtime, OrtSessionOptions* target);

 private:
  OrtExternalData() = default;

  std::map<std::string, std::vector<std::byte>> files_;  ///< By normal path.
  std::map<std::string, std::string> names_;             ///< What the engine asks for: its path.
};

}  // namespace penstock
