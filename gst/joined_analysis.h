// SPDX-License-Identifier: Apache-2.0
//
// What a model said of a whole frame, beside what models before it said.
#pragma once

#include <gst/gst.h>

#include <memory>
#include <string>

#include "gst/penanalysis_meta.h"
#include "penstock/base/error.h"
#include "penstock/records/records.h"

namespace penstock::gst {

bool says_nothing(const PictureFindings& said);
bool leaves_something(const DeviceFindings& device);

/// Puts `analysis`, by the model of this name, onto a frame whose metadata is writable: records,
/// and full precision. Where a model has looked at the frame before and its PenAnalysisMeta is
/// about all object records, that is replaced by one that has both: the objects behind the others,
/// classes, texts, areas, vectors and tensors under `attributes`. Else, and where both left
/// something on the device, it stands beside it, and is the latest.
Result<void> attach_findings(GstBuffer* frame, std::shared_ptr<Analysis> analysis,
                             const std::string& model);

}  // namespace penstock::gst
