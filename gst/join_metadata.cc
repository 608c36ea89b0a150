// SPDX-License-Identifier: Apache-2.0
#include "gst/join_metadata.h"

#include <gst/analytics/analytics.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gst/branch_records.h"
#include "gst/joined_analysis.h"
#include "gst/object_records.h"
#include "gst/penanalysis_meta.h"
#include "penstock/base/str_format.h"
#include "penstock/media/letterbox_scale.h"
#include "penstock/records/custom_json.h"
#include "penstock/records/join_results.h"

namespace penstock::gst {
namespace {

/// What one buffer says.
struct Said {
  std::shared_ptr<const Analysis> analysis;  ///< Null where it has none.
  FrameResult result;  ///< The analysis's, but for objects that are read from the records.
  bool objects_are_its = false;
};

std::vector<Detection> read_all(const std::vector<GstAnalyticsODMtd>& records) {
  std::vector<Detection> objects;
  for (const GstAnalyticsODMtd& record : records) {
    objects.push_back(read_object(record));
    objects.back().rotated = read_turn(record);
  }
  return objects;
}

Said read_said(const SizedFrame& frame) {
  Said said{.analysis = share_analysis(frame.buffer), .result = {}};
  const FrameObjects now = read_objects(frame.buffer);
  if (said.analysis != nullptr) said.result = said.analysis->result;
  said.objects_are_its = now.analysis != nullptr && now.analysis == said.analysis;
  if (said.objects_are_its) return said;
  said.result.objects = read_all(now.records);
  said.result.width = frame.width;
  said.result.height = frame.height;
  return said;
}

/// Metadata about another frame than the one that it is on.
Result<void> check_pts(const SizedFrame& into, const Said& said) {
  if (said.analysis == nullptr) return {};
  const auto pts = static_cast<std::int64_t>(GST_BUFFER_PTS(into.buffer));
  if (said.result.pts_ns == pts) return {};
  return fail(ErrorKind::kUnsupported, str_format("PTS (ns) '{}' of its metadata is not '{}', that "
                                                  "of the frame of pad '{}'",
                                                  said.result.pts_ns, pts, into.pad));
}

DeviceFindings at_size(DeviceFindings device, int width, int height) {
  device.letterbox = at_frame_size(device.letterbox, width, height);
  return device;
}

/// The result that the branches are added to. Identity is the first's that has one.
class Whole {
 public:
  explicit Whole(const SizedFrame& into) : into_(into), said_(read_said(into)) {
    if (said_.analysis != nullptr) {
      whole_ = *said_.analysis;
      whole_.result.objects = std::move(said_.result.objects);
      customs_.push_back(std::exchange(whole_.custom, {}));
      if (!said_.objects_are_its) whole_.object_device.clear();  // Of objects that are not there.
    } else {
      whole_.result = std::move(said_.result);
    }
    has_analysis_ = said_.analysis != nullptr;
    whole_.result.width = into.width;
    whole_.result.height = into.height;
  }

  Result<void> check() const {
    PENSTOCK_TRY(check_pts(into_, said_));
    if (!said_.objects_are_its) return {};
    const FrameResult& result = said_.analysis->result;
    if (result.width == into_.width && result.height == into_.height) return {};
    return fail(ErrorKind::kUnsupported,
                str_format("size {}x{} of its metadata is not {}x{}, that of its caps",
                           result.width, result.height, into_.width, into_.height));
  }

  Result<void> add(const SizedFrame& branch, std::size_t most_records) {
    Said said = read_said(branch);
    PENSTOCK_TRY(check_pts(into_, said));
    if (said.analysis != nullptr && !std::exchange(has_analysis_, true)) identify(*said.analysis);
    if (said.analysis == nullptr) copy_identity(said.result);
    const auto part = join_results(whole_.result, std::move(said.result));
    if (!part) return std::unexpected(part.error());
    const std::span<const Detection> objects =
        std::span(whole_.result.objects).subspan(part->first_object);
    PENSTOCK_TRY(join_records(into_.buffer, into_.width, into_.height,
                              {.frame = branch.buffer,
                               .width = branch.width,
                               .height = branch.height,
                               .objects = objects},
                              most_records));
    if (said.analysis != nullptr) add_rest(branch.pad, *said.analysis, *part, said.objects_are_its);
    return {};
  }

  Result<void> attach() {
    if (!has_analysis_) return {};
    auto custom = join_custom(customs_);
    if (!custom) return std::unexpected(custom.error().context("joining custom values"));
    whole_.custom = *std::move(custom);
    auto analysis = std::make_shared<const Analysis>(std::move(whole_));
    if (said_.analysis != nullptr) {
      replace_analysis(into_.buffer, std::move(analysis));
    } else {
      attach_analysis(into_.buffer, std::move(analysis));
    }
    return {};
  }

 private:
  /// The frame had no analysis: the first branch's says which frame it is.
  void identify(const Analysis& analysis) {
    whole_.result.source = analysis.result.source;
    whole_.result.frame = analysis.result.frame;
    whole_.result.generation = analysis.result.generation;
    whole_.result.pts_ns = analysis.result.pts_ns;
    whole_.times = analysis.times;
    whole_.predicted = analysis.predicted;
  }
  /// Records alone don't say whose they are.
  void copy_identity(FrameResult& result) const {
    result.source = whole_.result.source;
    result.generation = whole_.result.generation;
    result.pts_ns = whole_.result.pts_ns;
  }

  void add_rest(const std::string& pad, const Analysis& analysis, const JoinedPart& part,
                bool objects_are_its) {
    BranchFindings findings{.pad = pad,
                            .first_object = part.first_object,
                            .objects = whole_.result.objects.size() - part.first_object,
                            .picture = part.rest,
                            .device = at_size(analysis.device, into_.width, into_.height)};
    if (leaves_something(findings.device)) {
      if (!leaves_something(whole_.device)) {
        whole_.device = std::exchange(findings.device, {});
        for (std::size_t i = 0; i < part.masks.size(); ++i) {
          Detection& object = whole_.result.objects[part.first_object + i];
          if (part.masks[i] >= 0) object.mask = part.masks[i];
        }
      } else if (findings.device.masks) {
        findings.masks = part.masks;
      }
    }
    if (whole_.predicted && !analysis.predicted) {
      whole_.predicted = false;  // Somebody looked at the frame.
      whole_.times = analysis.times;
    }
    whole_.branches.push_back(std::move(findings));
    customs_.push_back(analysis.custom);
    for (BranchFindings earlier : analysis.branches) {
      earlier.pad = str_format("{}/{}", pad, earlier.pad);
      earlier.first_object += part.first_object;
      earlier.device = at_size(std::move(earlier.device), into_.width, into_.height);
      whole_.branches.push_back(std::move(earlier));
    }
    if (!objects_are_its) return;
    for (ObjectDeviceFindings of_object : analysis.object_device) {
      of_object.object += part.first_object;
      of_object.device = at_size(std::move(of_object.device), into_.width, into_.height);
      whole_.object_device.push_back(std::move(of_object));
    }
  }

  const SizedFrame& into_;
  Said said_;
  Analysis whole_;
  bool has_analysis_ = false;
  std::vector<std::string> customs_;
};

}  // namespace

bool has_findings(GstBuffer* frame) {
  return gst_buffer_get_analytics_relation_meta(frame) != nullptr ||
         read_analysis(frame) != nullptr;
}

Result<void> join_metadata(const SizedFrame& into, std::span<const SizedFrame> branches,
                           std::size_t most_records) {
  const auto where = [](const std::string& pad, const Error& error) {
    return std::unexpected(error.context(str_format("pad '{}'", pad)));
  };
  Whole whole(into);
  if (const auto checked = whole.check(); !checked) return where(into.pad, checked.error());
  for (const SizedFrame& branch : branches) {
    if (!has_findings(branch.buffer)) continue;
    const auto added = whole.add(branch, most_records);
    if (!added) return where(branch.pad, added.error());
  }
  return whole.attach();
}

}  // namespace penstock::gst
