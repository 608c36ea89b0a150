// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/tracker.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/track/assignment.h"
#include "penstock/track/box_motion.h"

namespace penstock {
namespace {

/// Of a box that was not seen for a while nobody knows where exactly it is: both sides of a pair
/// are grown before they are compared, by this part of their size a missed frame.
constexpr float kGrowthPerMiss = 0.02f;
constexpr float kMaxGrowth = 0.5f;
/// Of two tracks that overlap a detection alike the one seen last gets it.
constexpr float kCostOfAge = 0.15f;
/// Frames that a beginner may miss before it has come to nothing.
constexpr int kBeginnerMisses = 1;
constexpr std::size_t kMostTracks = 4096;

/// How often a thing went either way; older counts fade, so that a change is followed.
class Evidence {
 public:
  void note(bool yes) {
    ++(yes ? yes_ : no_);
    if (yes_ + no_ < kMemory) return;
    yes_ /= 2;
    no_ /= 2;
  }
  /// Not without any.
  bool mostly_yes() const { return yes_ > no_; }

 private:
  static constexpr float kMemory = 128;
  float yes_ = 0;
  float no_ = 0;
};

struct Track {
  std::int64_t id = 0;  ///< 0: not confirmed yet.
  BoxMotion motion;
  int class_id = 0;
  std::string label;
  float confidence = 0;
  TrackTimes times;
  int hits = 1;
  int missed = 0;
  bool is_beginner = true;  ///< Neither detected again nor come to nothing.
};

Box box_of(const Detection& object) { return {object.x, object.y, object.width, object.height}; }

bool is_box(const Detection& object) {
  return std::isfinite(object.x) && std::isfinite(object.y) && std::isfinite(object.width) &&
         std::isfinite(object.height) && object.width > 0 && object.height > 0;
}

Box grown(const Box& box, float part) {
  return {box.x - box.width * part / 2, box.y - box.height * part / 2, box.width * (1 + part),
          box.height * (1 + part)};
}

class ByteTracker final : public Tracker {
 public:
  explicit ByteTracker(const TrackerOptions& options)
      : options_(options), came_back_(std::size_t(options.predicted_frames)) {}

  std::vector<Detection> update(std::vector<Detection> detections,
                                const TrackedPicture& picture) override {
    for (Track& track : tracks_) track.motion.predict();
    // What another tracker before this one said of them holds no more.
    for (Detection& detection : detections) {
      detection.track_id = 0;
      detection.predicted = false;
    }
    sort_out(detections);
    times_.assign(detections.size(), {});
    matched_.assign(tracks_.size(), false);
    match(detections, sure_, options_.match_iou, picture.time,
          [](const Track& track) { return track.id != 0; });
    // An unsure detection is taken for an object that was there a moment ago, half hidden now.
    match(detections, unsure_, options_.unsure_match_iou, picture.time,
          [](const Track& track) { return track.id != 0 && track.missed == 0; });
    match(detections, sure_, options_.match_iou, picture.time,
          [](const Track& track) { return track.id == 0; });
    count_missed();
    begin(detections, picture.time);
    for (const Track& track : tracks_) {
      if (track.missed > 0 && is_told(track)) tell_predicted(track, picture, detections);
    }
    seen_picture_ = true;
    return detections;
  }

  std::vector<Detection> predict(const TrackedPicture& picture) override {
    std::vector<Detection> objects;
    times_.clear();
    for (Track& track : tracks_) {
      track.motion.predict();
      if (is_told(track)) tell_predicted(track, picture, objects);
    }
    return objects;
  }

  std::span<const TrackTimes> times() const override { return times_; }

  void reset() override {
    tracks_.clear();
    times_.clear();
    came_true_ = {};
    came_back_.assign(came_back_.size(), {});
    seen_picture_ = false;
  }

  std::size_t tracks() const override { return tracks_.size(); }

 private:
  void sort_out(const std::vector<Detection>& detections) {
    sure_.clear();
    unsure_.clear();
    for (std::size_t i = 0; i < detections.size(); ++i) {
      if (!is_box(detections[i])) continue;
      const float score = detections[i].confidence;
      if (score >= options_.sure_score) {
        if (sure_.size() < options_.max_tracks) sure_.push_back(i);
      } else if (score >= options_.unsure_score) {
        if (unsure_.size() < options_.max_tracks) unsure_.push_back(i);
      }
    }
  }

  /// Assigns `left` to tracks that `wanted` says and that have none yet; what found its track is
  /// taken out of `left`.
  template <typename Wanted>
  void match(std::vector<Detection>& detections, std::vector<std::size_t>& left, float least_iou,
             Nanoseconds time, const Wanted& wanted) {
    candidates_.clear();
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      if (!matched_[t] && wanted(tracks_[t])) candidates_.push_back(t);
    }
    if (candidates_.empty() || left.empty()) return;
    compare(detections, left, least_iou);
    const std::vector<int> columns_of = assign_compared(candidates_.size(), left.size());
    taken_.assign(left.size(), false);
    for (std::size_t row = 0; row < candidates_.size(); ++row) {
      if (columns_of[row] < 0) continue;
      const auto column = static_cast<std::size_t>(columns_of[row]);
      taken_[column] = true;
      matched_[candidates_[row]] = true;
      hit(tracks_[candidates_[row]], detections[left[column]], time);
      const Track& track = tracks_[candidates_[row]];
      if (track.id != 0) times_[left[column]] = track.times;
    }
    std::size_t kept = 0;
    for (std::size_t column = 0; column < left.size(); ++column) {
      if (!taken_[column]) left[kept++] = left[column];
    }
    left.resize(kept);
  }

  /// Fills costs_, candidates_ x left, and counts how many partners each could have.
  void compare(const std::vector<Detection>& detections, std::span<const std::size_t> left,
               float least_iou) {
    costs_.assign(candidates_.size() * left.size(), kNoPair);
    row_partners_.assign(candidates_.size(), 0);
    column_partners_.assign(left.size(), 0);
    const auto most_missed = static_cast<float>(std::max(options_.max_missed_frames, 1));
    for (std::size_t row = 0; row < candidates_.size(); ++row) {
      const Track& track = tracks_[candidates_[row]];
      const auto missed = static_cast<float>(track.missed);
      const float growth = std::min(kGrowthPerMiss * missed, kMaxGrowth);
      const Box place = grown(track.motion.box(), growth);
      for (std::size_t column = 0; column < left.size(); ++column) {
        const Detection& object = detections[left[column]];
        if (object.class_id != track.class_id) continue;
        const float iou = intersection_over_union(place, grown(box_of(object), growth));
        if (!(iou > 0 && iou >= least_iou)) continue;
        costs_[row * left.size() + column] =
            (1 - kCostOfAge) * (1 - iou) + kCostOfAge * missed / most_missed;
        ++row_partners_[row];
        ++column_partners_[column];
      }
    }
  }

  /// The column of each row of costs_. Most have one possible partner that has no other either;
  /// only the rest is a problem to be solved.
  std::vector<int> assign_compared(std::size_t rows, std::size_t columns) {
    std::vector<int> columns_of(rows, -1);
    std::vector<std::size_t> open_rows, open_columns;
    std::vector<bool> settled(columns, false);
    for (std::size_t row = 0; row < rows; ++row) {
      if (row_partners_[row] == 0) continue;
      const auto costs = std::span(costs_).subspan(row * columns, columns);
      const auto only = std::ranges::find_if(costs, [](float cost) { return cost < kNoPair; });
      const auto column = static_cast<std::size_t>(only - costs.begin());
      if (row_partners_[row] == 1 && column_partners_[column] == 1) {
        columns_of[row] = static_cast<int>(column);
        settled[column] = true;
      } else {
        open_rows.push_back(row);
      }
    }
    for (std::size_t column = 0; column < columns; ++column) {
      if (!settled[column] && column_partners_[column] > 0) open_columns.push_back(column);
    }
    std::vector<float> costs;
    costs.reserve(open_rows.size() * open_columns.size());
    for (const std::size_t row : open_rows) {
      for (const std::size_t column : open_columns) costs.push_back(costs_[row * columns + column]);
    }
    const std::vector<int> found = assign(costs, open_rows.size(), open_columns.size());
    for (std::size_t i = 0; i < open_rows.size(); ++i) {
      if (found[i] < 0) continue;
      columns_of[open_rows[i]] = static_cast<int>(open_columns[static_cast<std::size_t>(found[i])]);
    }
    return columns_of;
  }

  void hit(Track& track, Detection& object, Nanoseconds time) {
    track.motion.correct(box_of(object));
    const auto gap = static_cast<std::size_t>(track.missed);
    if (track.id != 0 && gap <= came_back_.size()) note_gaps(gap, true);
    if (std::exchange(track.is_beginner, false)) came_true_.note(true);
    track.missed = 0;
    track.times.last_seen = time;
    track.confidence = object.confidence;
    if (track.id == 0 && ++track.hits >= options_.confirm_frames) track.id = next_id_++;
    object.track_id = track.id;
  }

  /// Notes for gaps of 1 to `length` frames whether the detector came back to the object at once.
  void note_gaps(std::size_t length, bool came_back) {
    for (std::size_t i = 0; i < length; ++i) came_back_[i].note(came_back);
  }

  /// Counts the tracks that nothing was assigned to and drops the old ones.
  void count_missed() {
    std::size_t kept = 0;
    for (std::size_t t = 0; t < tracks_.size(); ++t) {
      Track& track = tracks_[t];
      if (!matched_[t]) miss(track);
      if (track.missed > (track.id != 0 ? options_.max_missed_frames : kBeginnerMisses)) continue;
      if (kept != t) tracks_[kept] = std::move(track);
      ++kept;
    }
    tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(kept), tracks_.end());
  }

  void miss(Track& track) {
    ++track.missed;
    if (track.is_beginner && track.missed > kBeginnerMisses) {
      track.is_beginner = false;
      came_true_.note(false);
    }
    const auto gap = static_cast<std::size_t>(track.missed);
    if (track.id != 0 && gap == came_back_.size() + 1) note_gaps(came_back_.size(), false);
  }

  void begin(std::vector<Detection>& detections, Nanoseconds time) {
    for (const std::size_t i : sure_) {
      if (tracks_.size() >= options_.max_tracks) return;
      Detection& object = detections[i];
      Track track{.id = 0,
                  .motion = BoxMotion(box_of(object)),
                  .class_id = object.class_id,
                  .label = object.label,
                  .confidence = object.confidence,
                  .times = {.first_seen = time, .last_seen = time}};
      // Whoever is there when the stream begins has been there for longer.
      if (!seen_picture_ || options_.confirm_frames == 1 || came_true_.mostly_yes()) {
        track.id = next_id_++;
        times_[i] = track.times;
      }
      object.track_id = track.id;
      tracks_.push_back(std::move(track));
    }
  }

  bool is_told(const Track& track) const {
    if (track.id == 0) return false;
    const auto missed = static_cast<std::size_t>(track.missed);
    return missed == 0 || (missed <= came_back_.size() && came_back_[missed - 1].mostly_yes());
  }

  void tell_predicted(const Track& track, const TrackedPicture& picture,
                      std::vector<Detection>& objects) {
    const Box box = track.motion.box();
    const float left = std::max(box.x, 0.0f);
    const float top = std::max(box.y, 0.0f);
    const float right = std::min(box.x + box.width, static_cast<float>(picture.width));
    const float bottom = std::min(box.y + box.height, static_cast<float>(picture.height));
    if (!(right > left && bottom > top)) return;
    if ((right - left) * (bottom - top) < box.width * box.height / 2) return;
    Detection& object = objects.emplace_back();
    object.class_id = track.class_id;
    object.label = track.label;
    object.confidence = track.confidence;
    object.x = left;
    object.y = top;
    object.width = right - left;
    object.height = bottom - top;
    object.track_id = track.id;
    object.predicted = true;
    times_.push_back(track.times);
  }

  const TrackerOptions options_;
  std::vector<Track> tracks_;
  std::vector<TrackTimes> times_;  ///< Of the answer, by index.
  std::int64_t next_id_ = options_.first_id;
  bool seen_picture_ = false;
  Evidence came_true_;               ///< Beginners that were detected again at once.
  std::vector<Evidence> came_back_;  ///< Tracks missed for index + 1 frames, seen again soon.

  // Of one update; members so that their memory is kept.
  std::vector<std::size_t> sure_, unsure_, candidates_;
  std::vector<bool> matched_, taken_;  ///< By track; by detection.
  std::vector<float> costs_;
  std::vector<int> row_partners_, column_partners_;
};

Result<void> check_part(std::string_view name, float value) {
  if (value >= 0.0f && value <= 1.0f) return {};
  return fail(ErrorKind::kInvalidArgument, str_format("{} {} is not within 0..1", name, value));
}

Result<void> check_count(std::string_view name, int value, int least, int most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorKind::kInvalidArgument,
              str_format("{} {} is not within {}..{}", name, value, least, most));
}

}  // namespace

Result<std::unique_ptr<Tracker>> Tracker::create(const TrackerOptions& options) {
  PENSTOCK_TRY(check_part("sure score", options.sure_score));
  PENSTOCK_TRY(check_part("unsure score", options.unsure_score));
  PENSTOCK_TRY(check_part("IoU of a match", options.match_iou));
  PENSTOCK_TRY(check_part("IoU of an unsure match", options.unsure_match_iou));
  PENSTOCK_TRY(check_count("frames to confirm", options.confirm_frames, 1, 1000));
  PENSTOCK_TRY(check_count("missed frames", options.max_missed_frames, 0, 100000));
  PENSTOCK_TRY(check_count("predicted frames", options.predicted_frames, 0, 1000));
  // What happens in longer gaps is learnt from tracks that live on.
  if (options.predicted_frames > options.max_missed_frames) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{} predicted frames are more than the {} missed ones after which a "
                           "track ends",
                           options.predicted_frames, options.max_missed_frames));
  }
  if (options.unsure_score > options.sure_score) {
    return fail(ErrorKind::kInvalidArgument, "the unsure score is above the sure one");
  }
  if (options.max_tracks < 1 || options.max_tracks > kMostTracks) {
    return fail(ErrorKind::kInvalidArgument, str_format("{} tracks at most is not within 1..{}",
                                                        options.max_tracks, kMostTracks));
  }
  if (options.first_id < 1 || options.first_id > std::int64_t{1} << 62) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("a first id of {} is not within 1..2^62", options.first_id));
  }
  return std::make_unique<ByteTracker>(options);
}

}  // namespace penstock
