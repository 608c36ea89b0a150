// SPDX-License-Identifier: Apache-2.0
//
// An RTSP server in the test's process that shows the square clip's kind of video.
#pragma once

#include <memory>
#include <string>

namespace penstock::e2e {

class RtspCamera {
 public:
  /// `frames` frames and then the end; 0: endless.
  explicit RtspCamera(int frames);
  ~RtspCamera();
  RtspCamera(const RtspCamera&) = delete;
  RtspCamera& operator=(const RtspCamera&) = delete;

  std::string address() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::e2e
