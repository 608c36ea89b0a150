// SPDX-License-Identifier: Apache-2.0
//
// PeerWatch notices that a peer is gone and cuts its lifeline: when its process ends (pidfd),
// however it ends, or when its end of the socket is closed. One thread serves all peers of a
// process.
//
//   auto watch = PeerWatch::create();
//   auto pidfd = peer_pidfd(socket);
//   auto watched = (*watch)->add(socket.fd(), std::move(*pidfd), lifeline);
//
// Thread-safe. A descendant of the peer that inherited the socket keeps it open, which is what the
// pidfd is for; a peer that lets go of a burst and lives on is what the socket is for.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/lifeline.h"

namespace penstock {

class PeerWatch {
 public:
  static constexpr std::size_t kMaxPeers = 1024;

  /// kExhausted when there is no descriptor or thread.
  static Result<std::unique_ptr<PeerWatch>> create();
  /// Cuts nothing. All `Watched` must have gone. In a process that was forked off (and has neither
  /// the thread nor a watch of its own) it and `Watched` only let go of their descriptors.
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// Ends the watching when destroyed; afterwards this lifeline is not cut by it any more.
  class [[nodiscard]] Watched {
   public:
    Watched() = default;
    Watched(Watched&& other) noexcept
        : watch_(std::exchange(other.watch_, nullptr)), id_(other.id_) {}
    Watched& operator=(Watched&& other) noexcept {
      std::swap(watch_, other.watch_);
      std::swap(id_, other.id_);
      return *this;
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() {
      if (watch_ != nullptr) watch_->remove(id_);
    }

   private:
    friend PeerWatch;
    Watched(PeerWatch* watch, std::uint64_t id) : watch_(watch), id_(id) {}

    PeerWatch* watch_ = nullptr;
    std::uint64_t id_ = 0;
  };

  /// `socket` stays the caller's and open as long as the watching lasts; messages may wait in it.
  /// kExhausted above kMaxPeers.
  Result<Watched> add(int socket, UniqueFd pidfd, std::shared_ptr<Lifeline> lifeline);

 private:
  struct Peer {
    int socket = -1;
    UniqueFd pidfd;
    std::shared_ptr<Lifeline> lifeline;
  };

  PeerWatch(UniqueFd epoll, UniqueFd stop);
  void run();
  void peer_gone(std::uint64_t id);
  void remove(std::uint64_t id);
  void forget(const Peer& peer);

  const pid_t owner_;
  UniqueFd epoll_;
  UniqueFd stop_;
  std::mutex mutex_;
  std::uint64_t next_id_ = 1;  // 0 is stop_
  std::map<std::uint64_t, Peer> peers_;
  std::thread thread_;
};

}  // namespace penstock
