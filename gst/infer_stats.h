// SPDX-License-Identifier: Apache-2.0
//
// peninfer's `stats` property:
//
//   penstock-stats, frames=(guint64), inferred=(guint64), unusable=(guint64), objects=(guint64),
//   objects-kept=(guint64), objects-left-out=(guint64), streams=(guint), queue=(guint),
//   held=(guint), held-max=(guint), residency-p50=(guint64)ns, residency-p99=(guint64)ns,
//   preprocessors=(guint64), ledger=(GstValueList of penstock-ledger-row, class=(string),
//   site=(string), count=(guint64), bytes=(guint64))
#pragma once

#include <gst/gst.h>

#include "gst/gst_ptr.h"
#include "gst/infer_stream.h"
#include "gst/sharing.h"

namespace penstock::gst {

/// Either may be null: before READY, or before PAUSED.
GstPtr<GstStructure> make_stats(const InferStream* stream, const OpenedInference* opened);

}  // namespace penstock::gst
