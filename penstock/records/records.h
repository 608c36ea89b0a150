// SPDX-License-Identifier: Apache-2.0
//
// Records: what inference says about a frame, as small host data. Boxes are in source pixels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

struct Detection {
  int class_id = 0;
  std::string label;     ///< From the model's labels; "class N" when it has none.
  float confidence = 0;  ///< 0..1.
  float x = 0, y = 0, width = 0, height = 0;
};

struct FrameResult {
  std::string source;
  std::uint64_t frame = 0;  ///< 0-based number within the source.
  std::int64_t pts_ns = -1;
  std::uint64_t generation = 0;
  int width = 0, height = 0;
  std::vector<Detection> objects;  ///< Score descending.
};

/// One JSON line without the newline (docs/json.md): source, frame, pts_ns, width, height,
/// objects[]. Numbers are plain decimal, non-finite values never occur, strings are escaped UTF-8.
std::string to_json_line(const FrameResult& result);

}  // namespace penstock
