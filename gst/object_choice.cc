// SPDX-License-Identifier: Apache-2.0
#include "gst/object_choice.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace penstock::gst {
namespace {

/// To sort by: NaN, which anybody may have written, has no order.
float sure(const Detection& object) {
  return std::isfinite(object.confidence) ? object.confidence : 0.0f;
}

double area(const RectI& region) { return static_cast<double>(region.width) * region.height; }

}  // namespace

std::optional<RectI> region_of(const Detection& object, int frame_width, int frame_height) {
  const auto within = [](double edge, int side) {
    return std::clamp(edge, 0.0, static_cast<double>(side));
  };
  const double x = object.x, y = object.y;
  const double right = x + static_cast<double>(object.width);
  const double bottom = y + static_cast<double>(object.height);
  if (!std::isfinite(x) || !std::isfinite(y) || !std::isfinite(right) || !std::isfinite(bottom)) {
    return std::nullopt;
  }
  const int left = static_cast<int>(std::floor(within(x, frame_width)));
  const int top = static_cast<int>(std::floor(within(y, frame_height)));
  const RectI whole{left, top, static_cast<int>(std::ceil(within(right, frame_width))) - left,
                    static_cast<int>(std::ceil(within(bottom, frame_height))) - top};
  const auto grown = grow_to_chroma(whole, frame_width, frame_height);
  return grown ? std::optional(*grown) : std::nullopt;
}

bool ObjectSchedule::passes(const Detection& object) const {
  const auto size = static_cast<float>(filter_.min_size);
  if (!(object.width >= size) || !(object.height >= size)) return false;
  return filter_.classes.empty() ||
         std::ranges::find(filter_.classes, object.label) != filter_.classes.end();
}

bool ObjectSchedule::is_due(std::optional<guint64> looked_at, guint64 number) const {
  if (!looked_at) return true;
  return filter_.reinfer_interval > 0 && number - *looked_at >= filter_.reinfer_interval;
}

ObjectChoice ObjectSchedule::choose(const FrameObjects& objects, guint64 number, int width,
                                    int height) {
  looked_at_.advance();
  ObjectChoice choice;
  std::vector<ObjectChoice::LookedAt> due;
  for (std::size_t i = 0; i < objects.objects.size(); ++i) {
    const Detection& object = objects.objects[i];
    const std::optional<guint64> track = objects.tracks[i];
    const auto region = region_of(object, width, height);
    if (!region || !passes(object)) continue;
    const bool is_known = track && !is_due(looked_at_.see(*track), number);
    if (!is_known && !object.predicted) {
      due.push_back({i, *region});
    } else if (track) {
      choice.kept.push_back(i);
      choice.not_due += is_known ? 1 : 0;
    }
  }
  std::ranges::sort(due, [&](const ObjectChoice::LookedAt& a, const ObjectChoice::LookedAt& b) {
    return std::tuple(-sure(objects.objects[a.object]), -area(a.region), a.object) <
           std::tuple(-sure(objects.objects[b.object]), -area(b.region), b.object);
  });
  for (std::size_t i = 0; i < due.size(); ++i) {
    const std::optional<guint64> track = objects.tracks[due[i].object];
    if (i < filter_.max_objects) {
      if (track) looked_at_.see(*track) = number;
      choice.looked_at.push_back(due[i]);
    } else {
      ++choice.left_out;
      if (track) choice.kept.push_back(due[i].object);
    }
  }
  std::ranges::sort(choice.looked_at, {}, &ObjectChoice::LookedAt::object);
  return choice;
}

}  // namespace penstock::gst
