// SPDX-License-Identifier: Apache-2.0
//
// A server that takes connections and is no camera: what `penstock run` must not wait for.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "penstock/base/unique_fd.h"

namespace penstock::e2e {

class RogueCamera {
 public:
  enum class Manner {
    kSilent,     ///< Says nothing, ever.
    kDrips,      ///< A byte of an answer that does not end, twice a second.
    kRedirects,  ///< Says at once that the camera is here.
  };
  explicit RogueCamera(Manner manner);
  ~RogueCamera();
  RogueCamera(const RogueCamera&) = delete;
  RogueCamera& operator=(const RogueCamera&) = delete;

  std::string address() const;
  /// Connections so far.
  int connections() const { return connections_; }

 private:
  void run();
  void accept();
  /// False when the client is gone.
  bool serve(int client) const;

  const Manner manner_;
  int port_ = 0;
  UniqueFd listener_;
  UniqueFd wake_;
  std::vector<UniqueFd> clients_;
  std::atomic<bool> ended_{false};
  std::atomic<int> connections_{0};
  std::thread thread_;
};

}  // namespace penstock::e2e
