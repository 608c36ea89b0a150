// SPDX-License-Identifier: Apache-2.0
//
// PictureSampler keeps a few frames of a run, spread over its length, for the report's pictures.
// Each is a deep copy (holding the decoder's buffer would starve its pool) and counted; at most
// kMaxPictures are alive. They become JPEG after the run, off the analytic path.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/pipeline/run_summary.h"

namespace penstock {

class PictureSampler {
 public:
  static constexpr std::size_t kMaxPictures = 8;

  /// `total_frames` 0: unknown; the step then starts at 32 frames and doubles when room is used up.
  explicit PictureSampler(std::uint64_t total_frames);
  ~PictureSampler();
  PictureSampler(const PictureSampler&) = delete;
  PictureSampler& operator=(const PictureSampler&) = delete;

  /// Frames may be left out; the next one then takes the place.
  bool wants(std::uint64_t frame) const { return frame >= next_; }
  void add(GstBuffer* buffer, GstCaps* caps, const FrameResult& result);
  std::uint64_t copies() const { return copies_; }

  /// The kept frames as JPEG at most 640 pixels wide.
  Result<std::vector<ReportPicture>> encode();

 private:
  struct Kept {
    GstSample* sample;
    FrameResult result;
  };
  std::uint64_t step_;
  std::uint64_t next_ = step_ / 2;
  std::uint64_t copies_ = 0;
  std::vector<Kept> kept_;
};

}  // namespace penstock
