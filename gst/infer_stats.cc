// SPDX-License-Identifier: Apache-2.0
#include "gst/infer_stats.h"

#include <string>

namespace penstock::gst {

GstPtr<GstStructure> make_stats(const InferStream* stream, const OpenedInference* opened) {
  const InferStream::Stats stats = stream != nullptr ? stream->stats() : InferStream::Stats{};
  GstPtr<GstStructure> made(gst_structure_new(
      "penstock-stats", "frames", G_TYPE_UINT64, stats.frames, "inferred", G_TYPE_UINT64,
      stats.inferred, "objects", G_TYPE_UINT64, stats.objects, "objects-kept", G_TYPE_UINT64,
      stats.objects_kept, "objects-left-out", G_TYPE_UINT64, stats.objects_left_out, "streams",
      G_TYPE_UINT, guint(stats.streams), "queue", G_TYPE_UINT, guint(stats.waiting), "held",
      G_TYPE_UINT, guint(stats.held), "held-max", G_TYPE_UINT, guint(stats.most_held),
      "residency-p50", G_TYPE_UINT64, guint64(stats.residency_p50.count()), "residency-p99",
      G_TYPE_UINT64, guint64(stats.residency_p99.count()), "preprocessors", G_TYPE_UINT64,
      guint64(opened != nullptr ? opened->inference->preprocessors() : 0), nullptr));
  GValue rows = G_VALUE_INIT;
  g_value_init(&rows, GST_TYPE_LIST);
  if (opened != nullptr) {
    for (const CopyLedger::Row& row : opened->device->ledger().rows()) {
      GValue value = G_VALUE_INIT;
      g_value_init(&value, GST_TYPE_STRUCTURE);
      g_value_take_boxed(&value, gst_structure_new("penstock-ledger-row", "class", G_TYPE_STRING,
                                                   std::string(to_string(row.copy_class)).c_str(),
                                                   "site", G_TYPE_STRING, row.site.c_str(), "count",
                                                   G_TYPE_UINT64, guint64(row.count), "bytes",
                                                   G_TYPE_UINT64, guint64(row.bytes), nullptr));
      gst_value_list_append_and_take_value(&rows, &value);
    }
  }
  gst_structure_take_value(made.get(), "ledger", &rows);
  return made;
}

}  // namespace penstock::gst
