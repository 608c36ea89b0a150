// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_stats.h"

#include "gst/ledger_list.h"

namespace penstock::gst {

GstPtr<GstStructure> make_stats(const InferStream* stream, const OpenedInference* opened) {
  const InferStream::Stats stats = stream != nullptr ? stream->stats() : InferStream::Stats{};
  GstPtr<GstStructure> made(gst_structure_new(
      "penstock-stats", "frames", G_TYPE_UINT64, stats.frames, "inferred", G_TYPE_UINT64,
      stats.inferred, "unusable", G_TYPE_UINT64, stats.unusable, "objects", G_TYPE_UINT64,
      stats.objects, "objects-kept", G_TYPE_UINT64, stats.objects_kept, "objects-left-out",
      G_TYPE_UINT64, stats.objects_left_out, "streams", G_TYPE_UINT, guint(stats.streams), "queue",
      G_TYPE_UINT, guint(stats.waiting), "held", G_TYPE_UINT, guint(stats.held), "held-max",
      G_TYPE_UINT, guint(stats.most_held), "residency-p50", G_TYPE_UINT64,
      guint64(stats.residency_p50.count()), "residency-p99", G_TYPE_UINT64,
      guint64(stats.residency_p99.count()), "preprocessors", G_TYPE_UINT64,
      guint64(opened != nullptr ? opened->inference->preprocessors() : 0), nullptr));
  set_ledger(made.get(), opened != nullptr ? &opened->device->ledger() : nullptr);
  return made;
}

}  // namespace penstock::gst
