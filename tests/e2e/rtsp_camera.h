// SPDX-License-Identifier: Apache-2.0
//
// An RTSP server in the test's process that shows the square clip's kind of video.
#pragma once

#include <memory>
#include <string>

namespace penstock::e2e {

class RtspCamera {
 public:
  /// `frames` frames and then the end; 0: endless. With a user it asks for the password.
  explicit RtspCamera(int frames, const std::string& user = {}, const std::string& password = {});
  /// What a gst-launch description shows, which ends in a payloader "pay0".
  explicit RtspCamera(const std::string& description, const std::string& user = {},
                      const std::string& password = {});
  ~RtspCamera();
  RtspCamera(const RtspCamera&) = delete;
  RtspCamera& operator=(const RtspCamera&) = delete;

  /// With `credentials` ("user:password") before the host.
  std::string address(const std::string& credentials = {}) const;
  /// At another port, where something stands before it.
  std::string address_at(int port, const std::string& credentials = {}) const;
  int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::e2e
