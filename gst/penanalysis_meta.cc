// SPDX-License-Identifier: Apache-2.0
#include "gst/penanalysis_meta.h"

#include <gst/video/gstvideometa.h>

#include <new>
#include <utility>

namespace penstock::gst {
namespace {

struct AnalysisMeta {
  GstMeta meta;
  std::shared_ptr<const Analysis> analysis;
};

GType analysis_meta_api_type() {
  // No tags: the records are in source pixels and stay true whatever happens to the memory, and the
  // transform below decides for itself what a copy keeps.
  static const GType type = [] {
    static const gchar* tags[] = {nullptr};
    return gst_meta_api_type_register("PenAnalysisMetaAPI", tags);
  }();
  return type;
}

gboolean init(GstMeta* meta, gpointer, GstBuffer*) {
  new (&reinterpret_cast<AnalysisMeta*>(meta)->analysis) std::shared_ptr<const Analysis>;
  return TRUE;
}

void free_meta(GstMeta* meta, GstBuffer*) {
  std::destroy_at(&reinterpret_cast<AnalysisMeta*>(meta)->analysis);
}

gboolean transform(GstBuffer* destination, GstMeta* meta, GstBuffer*, GQuark type, gpointer data) {
  // Only a whole-frame copy is the same picture. Boxes of a region or of a scaled frame would be
  // wrong in its coordinates, so those are refused rather than guessed.
  if (!GST_META_TRANSFORM_IS_COPY(type)) return FALSE;
  if (data != nullptr && static_cast<GstMetaTransformCopy*>(data)->region) return FALSE;
  attach_analysis(destination, reinterpret_cast<AnalysisMeta*>(meta)->analysis);
  return TRUE;
}

const GstMetaInfo* analysis_meta_info() {
  static const GstMetaInfo* info =
      gst_meta_register(analysis_meta_api_type(), "PenAnalysisMeta", sizeof(AnalysisMeta), init,
                        free_meta, transform);
  return info;
}

/// Null where there is none.
AnalysisMeta* latest_meta(GstBuffer* buffer) {
  AnalysisMeta* found = nullptr;
  gpointer state = nullptr;
  while (GstMeta* meta =
             gst_buffer_iterate_meta_filtered(buffer, &state, analysis_meta_api_type())) {
    found = reinterpret_cast<AnalysisMeta*>(meta);
  }
  return found;
}

}  // namespace

std::shared_ptr<const Analysis> share_analysis(GstBuffer* buffer) {
  const AnalysisMeta* meta = latest_meta(buffer);
  return meta == nullptr ? nullptr : meta->analysis;
}

const Analysis* read_analysis(GstBuffer* buffer) { return share_analysis(buffer).get(); }

void attach_analysis(GstBuffer* buffer, std::shared_ptr<const Analysis> analysis) {
  GstMeta* meta = gst_buffer_add_meta(buffer, analysis_meta_info(), nullptr);
  reinterpret_cast<AnalysisMeta*>(meta)->analysis = std::move(analysis);
}

void replace_analysis(GstBuffer* buffer, std::shared_ptr<const Analysis> analysis) {
  latest_meta(buffer)->analysis = std::move(analysis);
}

}  // namespace penstock::gst
