// SPDX-License-Identifier: Apache-2.0
#include "gst/joined_analysis.h"

#include <gst/analytics/analytics.h>

#include <iterator>
#include <utility>
#include <vector>

#include "gst/analysis_relations.h"
#include "gst/object_records.h"

namespace penstock::gst {
namespace {

/// Whether `analysis` is about the frame's object records, and those alone.
bool tells_all(const Analysis& analysis, GstBuffer* frame) {
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(frame);
  std::vector<GstAnalyticsODMtd> records;
  if (meta != nullptr) records = object_records(meta);
  return are_records_of(records, analysis.result.objects);
}

std::shared_ptr<Analysis> join(const Analysis& earlier, Analysis later, const std::string& model) {
  auto both = std::make_shared<Analysis>(earlier);
  FrameResult& result = both->result;
  std::vector<Detection>& found = later.result.objects;
  result.objects.insert(result.objects.end(), std::move_iterator(found.begin()),
                        std::move_iterator(found.end()));
  if (!says_nothing(later.result)) {
    Attributes& said = result.attributes.emplace_back();
    static_cast<PictureFindings&>(said) = static_cast<PictureFindings&&>(later.result);
    said.model = model;
  }
  if (leaves_something(later.device)) both->device = std::move(later.device);
  return both;
}

}  // namespace

bool says_nothing(const PictureFindings& said) {
  return said.classes.empty() && said.areas.empty() && said.embedding.empty() &&
         said.tensors.empty() && said.texts.empty();
}

bool leaves_something(const DeviceFindings& device) {
  return device.masks || device.class_map || !device.tensors.empty();
}

Result<void> attach_findings(GstBuffer* frame, std::shared_ptr<Analysis> analysis,
                             const std::string& model) {
  const auto earlier = share_analysis(frame);
  const bool fits = earlier != nullptr && tells_all(*earlier, frame) &&
                    !(leaves_something(earlier->device) && leaves_something(analysis->device));
  PENSTOCK_TRY(attach_relations(frame, analysis->result));
  if (fits) {
    replace_analysis(frame, join(*earlier, std::move(*analysis), model));
  } else {
    attach_analysis(frame, std::move(analysis));
  }
  return {};
}

}  // namespace penstock::gst
