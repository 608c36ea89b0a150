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

/// Publishes `packet`, and wakes the reader where the queue has an event flag. Never waits for
/// room: kTooMany for a packet longer than the queue, kFull when the peer has not taken the last.
/// Also why the lifeline is cut.
template <PlainOldData Datum>
Result<void, QueueError> send_packet(QueueWriter<Datum, QueueFlavor::kSynchronised>& writer,
                                     std::span<const Datum> packet,
                                     const WaitOptions& options = {}) {
  PENSTOCK_TRY(writer.end().lifeline()->check());
  PENSTOCK_TRY(writer.write(packet));
  if (const auto flag = writer.event_flag()) flag->wake(options.not_empty);
  return {};
}

/// Waits for a packet and takes all that is there, at most the queue's capacity, into `packet`,
/// whose room is used again. The peer sends the next one only when this was answered, so that more
/// than one packet is one malformed packet. Wakes nobody: tell_room() does when it has been
/// answered.
template <PlainOldData Datum>
Result<void, QueueError> receive_packet(QueueReader<Datum, QueueFlavor::kSynchronised>& reader,
                                        std::vector<Datum>& packet, Deadline deadline,
                                        const WaitOptions& options = {}) {
  const auto there = reader.wait_for_items(1, deadline, options);
  if (!there) return std::unexpected(there.error());
  packet.resize(*there);
  return reader.read(packet);
}

template <PlainOldData Datum>
Result<std::vector<Datum>, QueueError> receive_packet(
    QueueReader<Datum, QueueFlavor::kSynchronised>& reader, Deadline deadline,
    const WaitOptions& options = {}) {
  std::vector<Datum> packet;
  PENSTOCK_TRY(receive_packet(reader, packet, deadline, options));
  return packet;
}

/// Wakes a peer that waits for room. None of ours does; and not between a packet and its answer,
/// which would come later by what a barrier costs.
template <PlainOldData Datum>
void tell_room(QueueReader<Datum, QueueFlavor::kSynchronised>& reader,
               const WaitOptions& options = {}) {
  if (const auto flag = reader.event_flag()) flag->wake(options.not_full);
}

}  // namespace penstock
