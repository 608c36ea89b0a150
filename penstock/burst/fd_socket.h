// SPDX-License-Identifier: Apache-2.0
//
// FdSocket: whole messages with file descriptors over a connected Unix SOCK_SEQPACKET socket. A
// message arrives complete or is refused; a slow or lying peer costs its deadline and at most one
// message.
//
//   PENSTOCK_TRY(socket.send(encode(descriptor), fds_of(descriptor), deadline));
//   auto message = socket.receive(deadline);
//   auto descriptor = decode_descriptor(message->bytes, std::move(message->files));
//
// One thread may send while another receives.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"

namespace penstock {

struct FdMessage {
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> files;
};

class FdSocket {
 public:
  static constexpr std::size_t kMaxBytes = 32768;
  static constexpr std::size_t kMaxFiles = 16;

  /// Takes a connected SOCK_SEQPACKET socket.
  explicit FdSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  static Result<std::pair<FdSocket, FdSocket>> pair();

  int fd() const { return socket_.get(); }

  /// Sends duplicates of `files`. kInvalidArgument (empty, or over the limits above, or a deadline
  /// that never passes), kDeadline, kNotFound when the peer has closed, kIo.
  Result<void> send(std::span<const std::byte> bytes, std::span<const int> files,
                    Deadline deadline) const;

  /// kCorrupt for a message over the limits, kExhausted when this process can't have more open
  /// files: what came with it has been closed. kDeadline, kNotFound when the peer has closed (after
  /// its last message), kInvalidArgument, kIo.
  Result<FdMessage> receive(Deadline deadline) const;

 private:
  UniqueFd socket_;
};

/// The process that connected to the listening socket, or at the connecting end the one that called
/// listen(), or that made the pair: not necessarily who has the descriptor now. kUnsupported where
/// the kernel can't tell, kNotFound when it is gone.
Result<UniqueFd> peer_pidfd(const FdSocket& socket);

/// A descriptor that polls readable when process `pid` has ended.
Result<UniqueFd> open_pidfd(pid_t pid);

}  // namespace penstock
