// SPDX-License-Identifier: Apache-2.0
//
// What crosses the socket of a burst besides the two queues. A message is a header and a body, all
// little-endian, in one seqpacket message with its files:
//
//   0  magic    u32  "PnBc"
//   4  version  u16  kControlVersion; another one is refused
//   6  type     u16  ControlType
//   8  id       u32  an answer has that of its question
//   12 files    u32  how many came with it
//   16 body
//
//   client                                server
//   Describe id ->                                      first and only: a look at the model
//                              <- Configured id         without a burst; then the end
//   Configure id ->                                     once, first
//                              <- Configured id         the status; else then nothing but the end
//                              <- GetMemories id        while an execution waits, one at a time
//   Memories id ->
//   FreeMemory ->                                       no answer
//   Execute id ->                                       the request in a sealed memfd
//                              <- Executed id           the result in a sealed memfd
//                              <- Closing               the server ends the burst, and says why
//
// Anything else, at any other time, ends the burst. Parsing takes bytes of any kind: kCorrupt,
// naming what is wrong. Lengths of strings and lists are compared with what is there before
// anything is reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "penstock/base/clock.h"
#include "penstock/base/error.h"
#include "penstock/burst/burst_memory.h"
#include "penstock/burst/burst_types.h"
#include "penstock/burst/fd_socket.h"
#include "penstock/burst/queue_descriptor.h"
#include "penstock/memory/tensor.h"

namespace penstock {

inline constexpr std::uint16_t kControlVersion = 1;
inline constexpr std::size_t kMaxModelName = 256;
/// Slots of one GetMemories: each may come with a file.
inline constexpr std::size_t kMaxSlotsAtOnce = FdSocket::kMaxFiles;

struct DescribeMessage {
  std::string model;  ///< As ConfigureMessage::model.
};
struct ConfigureMessage {
  std::string model;  ///< UTF-8; empty: the only one that is served.
  Nanoseconds poll_window{0};
  Nanoseconds execution_limit{0};
  QueueDescriptor requests;
  QueueDescriptor results;
};
struct ConfiguredMessage {
  ErrorStatus status = ErrorStatus::kGeneralFailure;
  std::string message;  ///< Of a refusal.
  std::string artefact_hash;
  std::uint64_t generation = 0;  ///< Of the model; a reload counts up. A burst keeps its own.
  std::vector<TensorSpec> inputs;
  std::vector<TensorSpec> outputs;
};
struct GetMemoriesMessage {
  std::vector<std::int32_t> slots;
};
struct MemoriesMessage {
  ErrorStatus status = ErrorStatus::kGeneralFailure;
  std::vector<BurstMemory> memories;  ///< One a slot, in order; empty unless kNone.
};
struct FreeMemoryMessage {
  std::int32_t slot = 0;
};
struct ExecuteMessage {
  UniqueFd request;  ///< Datums in a file that nobody can change any more (sealed against writing).
};
struct ExecutedMessage {
  UniqueFd result;
};
struct ClosingMessage {
  std::string reason;
};

struct ControlMessage {
  std::uint32_t id = 0;
  std::variant<ConfigureMessage, ConfiguredMessage, GetMemoriesMessage, MemoriesMessage,
               FreeMemoryMessage, ExecuteMessage, ExecutedMessage, ClosingMessage, DescribeMessage>
      body;
};

/// As it is sent: bytes, and the files to go with them (still owned by `message`). A specification
/// too long for one message is kInvalidArgument.
struct EncodedControl {
  std::vector<std::byte> bytes;
  std::vector<int> files;
};
Result<EncodedControl> encode(const ControlMessage& message);
Result<ControlMessage> decode_control(FdMessage message);

/// encode() and send().
Result<void> send_control(const FdSocket& socket, const ControlMessage& message, Deadline deadline);
/// receive() and decode_control().
Result<ControlMessage> receive_control(const FdSocket& socket, Deadline deadline);

}  // namespace penstock
