// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zones.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxCorners = 256;
constexpr std::size_t kMaxPlaces = 256;  // Zones and lines together.
constexpr std::size_t kMaxLabels = 256;  // Counted apart at a place.

/// Twice the area of the triangle: above 0 when c lies to the right of the way from a to b, as seen
/// (y runs down).
double side(const ZonePoint& a, const ZonePoint& b, const ZonePoint& c) {
  return (double(b.x) - double(a.x)) * (double(c.y) - double(a.y)) -
         (double(b.y) - double(a.y)) * (double(c.x) - double(a.x));
}

/// Whether two stretches meet in a point that is inside both.
bool cross(const ZonePoint& a, const ZonePoint& b, const ZonePoint& c, const ZonePoint& d) {
  return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
}

/// Even-odd rule. A point on the left or upper edge is inside, one on the right or lower is not.
bool contains(std::span<const ZonePoint> corners, const ZonePoint& point) {
  bool inside = false;
  for (std::size_t i = 0, j = corners.size() - 1; i < corners.size(); j = i++) {
    const ZonePoint& a = corners[i];
    const ZonePoint& b = corners[j];
    if ((a.y > point.y) == (b.y > point.y)) continue;
    const double x = (double(b.x) - double(a.x)) * (double(point.y) - double(a.y)) /
                         (double(b.y) - double(a.y)) +
                     double(a.x);
    if (double(point.x) < x) inside = !inside;
  }
  return inside;
}

bool wanted(std::span<const std::string> labels, const std::string& label) {
  return labels.empty() || std::ranges::contains(labels, label);
}

void count(std::vector<LabelCount>& counts, const std::string& label) {
  const auto at = std::ranges::lower_bound(counts, label, {}, &LabelCount::label);
  if (at != counts.end() && at->label == label) {
    ++at->count;
  } else if (counts.size() < kMaxLabels) {
    counts.insert(at, {.label = label, .count = 1});
  }
}

struct Visitor {
  std::string label;
  Nanoseconds seen{};
  std::uint64_t frame = 0;                          ///< The number of the one that saw it last.
  std::optional<ZonePoint> place;                   ///< Last time.
  std::vector<std::optional<Nanoseconds>> entered;  ///< By zone.
};

using Visitors = std::map<std::int64_t, Visitor>;

class Counter final : public ZoneCounter {
 public:
  explicit Counter(const ZoneOptions& options) : options_(options) {
    for (const Zone& zone : options.zones) {
      total_.zones.push_back({.name = zone.name, .inside_labels = {}});
    }
    for (const CountingLine& line : options.lines) {
      total_.lines.push_back({.name = line.name, .forward_labels = {}, .backward_labels = {}});
    }
  }

  ZoneFrame update(std::span<const Detection> objects, Nanoseconds time, int width,
                   int height) override {
    time_ = std::max(time_, time);
    ++frame_;
    total_.events.clear();
    for (ZoneState& zone : total_.zones) {
      zone.inside = 0;
      zone.longest_dwell = {};
      zone.inside_labels.clear();
    }
    for (const Detection& object : objects) look_at(object, width, height);
    forget();
    return total_;
  }

  void reset() override {
    visitors_.clear();
    time_ = {};
    frame_ = 0;
  }

 private:
  void look_at(const Detection& object, int width, int height) {
    // Whoever the lower border cuts off stands on it, and in the zones that reach it.
    const float last = std::nextafter(1.0f, 0.0f);
    const ZonePoint place{
        std::min((object.x + object.width / 2) / static_cast<float>(std::max(width, 1)), last),
        std::min((object.y + object.height) / static_cast<float>(std::max(height, 1)), last)};
    Visitor* visitor = object.track_id == 0 ? nullptr : visitor_of(object);
    for (std::size_t i = 0; i < options_.zones.size(); ++i) {
      const Zone& zone = options_.zones[i];
      // An object whose label is another now has left the zones of its former one.
      const bool inside = wanted(zone.labels, object.label) && contains(zone.corners, place);
      ZoneState& state = total_.zones[i];
      if (inside) {
        ++state.inside;
        count(state.inside_labels, object.label);
      }
      if (visitor == nullptr) continue;
      std::optional<Nanoseconds>& since = visitor->entered[i];
      if (inside && !since) {
        since = time_;
        ++state.entered;
        tell(ZoneEventKind::kEntered, zone.name, object.track_id, object.label, {});
      } else if (!inside && since) {
        leave(i, object.track_id, *visitor, time_);
      }
      if (since) state.longest_dwell = std::max(state.longest_dwell, time_ - *since);
    }
    if (visitor == nullptr) return;
    if (visitor->place) cross_lines(object, *visitor->place, place);
    visitor->place = place;
    visitor->seen = time_;
    visitor->frame = frame_;
  }

  Visitor* visitor_of(const Detection& object) {
    const auto found = visitors_.find(object.track_id);
    if (found != visitors_.end()) return &found->second;
    // Frames without times forget nobody: then whoever was seen longest ago makes room.
    if (visitors_.size() >= options_.max_objects && !forget_oldest()) return nullptr;
    Visitor fresh{
        .label = object.label, .seen = time_, .frame = frame_, .place = {}, .entered = {}};
    fresh.entered.resize(options_.zones.size());
    return &visitors_.emplace(object.track_id, std::move(fresh)).first->second;
  }

  void cross_lines(const Detection& object, const ZonePoint& from, const ZonePoint& to) {
    for (std::size_t i = 0; i < options_.lines.size(); ++i) {
      const CountingLine& line = options_.lines[i];
      if (!wanted(line.labels, object.label)) continue;
      // On the line counts as on its right, so that a stop there is one crossing.
      const bool was_right = side(line.from, line.to, from) >= 0;
      const bool is_right = side(line.from, line.to, to) >= 0;
      const bool within = side(from, to, line.from) * side(from, to, line.to) <= 0;
      if (was_right == is_right || !within) continue;
      LineState& state = total_.lines[i];
      ++(is_right ? state.forwards : state.backwards);
      count(is_right ? state.forward_labels : state.backward_labels, object.label);
      tell(is_right ? ZoneEventKind::kCrossedForwards : ZoneEventKind::kCrossedBackwards, line.name,
           object.track_id, object.label, {});
    }
  }

  void leave(std::size_t zone, std::int64_t track_id, Visitor& visitor, Nanoseconds when) {
    const Nanoseconds dwell = when - *visitor.entered[zone];
    visitor.entered[zone].reset();
    ZoneState& state = total_.zones[zone];
    ++state.left;
    state.total_dwell += dwell;
    tell(ZoneEventKind::kLeft, state.name, track_id, visitor.label, dwell);
  }

  void forget() {
    for (auto at = visitors_.begin(); at != visitors_.end();) {
      const Visitor& visitor = at->second;
      const bool stays = visitor.frame == frame_ || time_ - visitor.seen < options_.forget_after;
      at = stays ? std::next(at) : forget(at);
    }
  }

  /// Of those that neither this frame nor the last one has seen; false if there is none.
  bool forget_oldest() {
    const auto oldest = std::ranges::min_element(
        visitors_, {}, [](const auto& entry) { return entry.second.frame; });
    if (oldest == visitors_.end() || oldest->second.frame + 1 >= frame_) return false;
    forget(oldest);
    return true;
  }

  Visitors::iterator forget(Visitors::iterator at) {
    Visitor& visitor = at->second;
    for (std::size_t i = 0; i < visitor.entered.size(); ++i) {
      if (visitor.entered[i]) leave(i, at->first, visitor, visitor.seen);
    }
    return visitors_.erase(at);
  }

  void tell(ZoneEventKind kind, const std::string& place, std::int64_t track_id,
            const std::string& label, Nanoseconds dwell) {
    total_.events.push_back(
        {.kind = kind, .place = place, .track_id = track_id, .label = label, .dwell = dwell});
  }

  const ZoneOptions options_;
  Visitors visitors_;
  std::uint64_t frame_ = 0;
  ZoneFrame total_;
  Nanoseconds time_{};
};

/// NaN is outside.
bool is_in_picture(const ZonePoint& point) {
  return point.x >= 0 && point.x <= 1 && point.y >= 0 && point.y <= 1;
}

Result<void> check_zone(const Zone& zone) {
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::kInvalidArgument, str_format("zone '{}' {}", zone.name, why));
  };
  const std::size_t corners = zone.corners.size();
  if (corners < 3 || corners > kMaxCorners) {
    return refuse(str_format("has {} corners, not 3..{}", corners, kMaxCorners));
  }
  double area = 0;
  for (std::size_t i = 0; i < corners; ++i) {
    const ZonePoint& a = zone.corners[i];
    const ZonePoint& b = zone.corners[(i + 1) % corners];
    if (!is_in_picture(a)) {
      return refuse(
          str_format("has corner {} at {:g},{:g}, outside the picture: X and Y are parts "
                     "of the picture, 0..1",
                     i + 1, a.x, a.y));
    }
    area += double(a.x) * double(b.y) - double(b.x) * double(a.y);
    for (std::size_t j = i + 1; j < corners; ++j) {
      if (cross(a, b, zone.corners[j], zone.corners[(j + 1) % corners])) {
        return refuse(str_format("crosses itself: the edges from corners {} and {}", i + 1, j + 1));
      }
    }
  }
  if (area == 0) return refuse("has no area");
  return {};
}

}  // namespace

Result<std::unique_ptr<ZoneCounter>> ZoneCounter::create(const ZoneOptions& options) {
  if (options.zones.size() + options.lines.size() > kMaxPlaces) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} zones and lines are more than {}",
                           options.zones.size() + options.lines.size(), kMaxPlaces));
  }
  std::set<std::string> names;
  const auto check_name = [&](const std::string& name) -> Result<void> {
    if (!name.empty() && names.insert(name).second) return {};
    return fail(ErrorKind::kInvalidArgument,
                str_format("a zone's or line's name is empty or given twice: '{}'", name));
  };
  for (const Zone& zone : options.zones) {
    PENSTOCK_TRY(check_name(zone.name));
    PENSTOCK_TRY(check_zone(zone));
  }
  for (const CountingLine& line : options.lines) {
    PENSTOCK_TRY(check_name(line.name));
    const bool has_length = line.from.x != line.to.x || line.from.y != line.to.y;
    if (!is_in_picture(line.from) || !is_in_picture(line.to) || !has_length) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("line '{}' has an end outside 0..1 or no length", line.name));
    }
  }
  if (options.forget_after < Nanoseconds::zero() || options.max_objects < 1) {
    return fail(ErrorKind::kInvalidArgument, "the time to forget is negative, or no object fits");
  }
  return std::make_unique<Counter>(options);
}

}  // namespace penstock
