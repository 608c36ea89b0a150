// SPDX-License-Identifier: Apache-2.0
//
// QueueMemory: the shared memory of one queue as one process has it mapped. The creator makes a
// sealed memfd and describes it; the other process attaches to the description. What is described
// is never believed: every rule of check_parts(), and sizes and seals of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/burst/event_flag.h"
#include "penstock/burst/queue_descriptor.h"
#include "penstock/burst/ring.h"
#include "penstock/memory/shared_mapping.h"

namespace penstock {

/// Room for `elements` of `quantum` bytes.
struct QueueShape {
  std::size_t quantum = 0;
  std::size_t elements = 0;
  QueueFlavor flavor = QueueFlavor::kSynchronised;
  bool event_flag = false;  ///< Synchronised only.
};

class QueueMemory {
 public:
  /// kInvalidArgument for a shape that can't be (no element, over 256 MiB, an event word where
  /// there is none), kExhausted.
  static Result<QueueMemory> create(const QueueShape& shape);

  /// kCorrupt, naming what the descriptor or its file has wrong; kExhausted. The file is closed in
  /// any case.
  static Result<QueueMemory> attach(QueueDescriptor descriptor, std::size_t quantum,
                                    QueueFlavor flavor);

  /// With a duplicate of the file. Of the creator's memory only, and before settle(): kUnsupported.
  Result<QueueDescriptor> describe();
  /// Synchronised, described and not settled: the peer may be taking pages away.
  bool is_unsettled() const { return is_described_ && file_.is_valid(); }

  /// The check of a synchronised queue's creator when its peer says that it has attached: kCorrupt
  /// unless the file has been sealed against holes; then no page of it can go any more, and the
  /// file itself is closed. Before, the peer can make pages go, which are allocated again when
  /// touched. Nothing to do for others.
  Result<void> settle();

  /// Valid while this object is.
  const RingView& ring() const { return ring_; }
  std::optional<EventFlag> flag() const;

 private:
  QueueMemory() = default;
  std::byte* part(QueuePart part) const;
  void find_parts(std::size_t quantum);

  SharedMapping mapping_;
  std::vector<Grantor> grantors_;
  UniqueFd file_;              // The creator's, until settled.
  bool is_described_ = false;  // Synchronised only.
  std::size_t quantum_ = 0;
  QueueFlavor flavor_ = QueueFlavor::kSynchronised;
  RingView ring_;
};

}  // namespace penstock
