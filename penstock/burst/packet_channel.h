// SPDX-License-Identifier: Apache-2.0
//
// Packets over a queue of datums: each is published by one write and taken out whole, into private
// memory, before anything of it is looked at.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "penstock/base/deadline.h"
#include "penstock/base/error.h"
#include "penstock/burst/message_queue.h"

namespace penstock {

/// Publishes `packet`: write_blocking() where the queue has an event flag, else write(). Never
/// waits for room: kTooMany for a packet longer than the queue, kFull when the peer has not taken
/// the last.
template <PlainOldData Datum>
Result<void, QueueError> send_packet(QueueWriter<Datum, QueueFlavor::kSynchronised>& writer,
                                     std::span<const Datum> packet, Deadline deadline,
                                     const WaitOptions& options = {}) {
  if (packet.size() > writer.capacity()) return std::unexpected(QueueError::kTooMany);
  const auto room = writer.available();
  if (!room) return std::unexpected(room.error());
  if (packet.size() > *room) return std::unexpected(QueueError::kFull);
  if (!writer.event_flag()) return writer.write(packet);
  return writer.write_blocking(packet, deadline, options);
}

/// Waits for a packet and takes all that is there, at most the queue's capacity. The peer sends the
/// next one only when this was answered, so that more than one packet is one malformed packet.
template <PlainOldData Datum>
Result<std::vector<Datum>, QueueError> receive_packet(
    QueueReader<Datum, QueueFlavor::kSynchronised>& reader, Deadline deadline,
    const WaitOptions& options = {}) {
  const auto there = reader.wait_for_items(1, deadline, options);
  if (!there) return std::unexpected(there.error());
  std::vector<Datum> packet(*there);
  // They are there, so that this does not wait; it tells a writer who waits for room.
  PENSTOCK_TRY(reader.read_blocking(packet, deadline, options));
  return packet;
}

}  // namespace penstock
