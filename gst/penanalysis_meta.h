// SPDX-License-Identifier: Apache-2.0
//
// PenAnalysisMeta carries what inference said about a frame in full precision, beside the standard
// GstAnalytics relations that stock elements read. The content is immutable and shared: a full
// buffer copy carries the same Analysis on, a copy of a region drops it (contract G02).
//
//   if (const Analysis* analysis = read_analysis(buffer)) {
//     line = to_json_line(analysis->result);
//   }
#pragma once

#include <gst/gst.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "penstock/observe/latency.h"
#include "penstock/records/records.h"
#include "penstock/task/output_decoder.h"

namespace penstock::gst {

/// What a second stage left on the device about one object, or about objects within it.
struct ObjectDeviceFindings {
  std::size_t object = 0;  ///< Its place in the frame's objects.
  std::string model;
  DeviceFindings device;
};

/// What a branch said of a frame and has no place in the frame's own findings, since an earlier one
/// said something of the kind (penaggregate).
struct BranchFindings {
  std::string pad;               ///< Of penaggregate.
  std::size_t first_object = 0;  ///< Its objects are those from here on,
  std::size_t objects = 0;       ///< so many.
  PictureFindings picture;
  DeviceFindings device;
  /// By its objects: which of `device.masks` is theirs, -1: none. Empty where `device` has none.
  std::vector<int> masks{};
};

struct Analysis {
  /// Behind penaggregate objects are in the order of its pads, then as in records.h.
  FrameResult result;
  DeviceFindings device;  ///< Masks and tensors, not read back; copies of the buffer share them.
  StageTimes times;       ///< Of regions the slowest; of several stages the first.
  /// Nobody looked at the frame: its objects are where a tracker supposes them. No `times`.
  bool predicted = false;
  std::vector<ObjectDeviceFindings> object_device{};
  std::vector<BranchFindings> branches{};
  /// A JSON value (RFC 8259) of whoever attached it, or empty: nothing here reads it. Distinct ones
  /// of several branches become {"branches":[...]} (penstock/records/custom_json.h).
  std::string custom{};
};

/// The latest analysis on `buffer`, null when it has none. Valid as long as the buffer keeps its
/// metadata; share_analysis() outlives the buffer.
__attribute__((visibility("default"))) const Analysis* read_analysis(GstBuffer* buffer);
__attribute__((visibility("default"))) std::shared_ptr<const Analysis> share_analysis(
    GstBuffer* buffer);

/// Adds `analysis` (not null) to a buffer whose metadata is writable.
__attribute__((visibility("default"))) void attach_analysis(
    GstBuffer* buffer, std::shared_ptr<const Analysis> analysis);

/// Puts `analysis` (not null) in the place of the latest one of a buffer that has one and whose
/// metadata is writable. Other buffers that share the former keep it.
void replace_analysis(GstBuffer* buffer, std::shared_ptr<const Analysis> analysis);

}  // namespace penstock::gst
