// SPDX-License-Identifier: Apache-2.0
//
// P01: NMS as a device job against a serial reference that shares nothing with it: the reference
// marks losers in a quadratic sweep over an index list. This file, too, is compiled without
// floating-point contraction.
#include "penstock/task/nms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>

#include "penstock/media/test_frames.h"
#include "penstock/task/detection_job.h"

namespace penstock {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<DetectionRecord> reference(const std::vector<Candidate>& candidates, float threshold,
                                       bool agnostic, std::size_t limit) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const DetectionRecord& r = candidates[i].record;
    const float sum = r.x0 + r.y0 + r.x1 + r.y1 + r.score;
    if (std::isfinite(sum)) order.push_back(i);
  }
  // Insertion by repeated selection: the highest score, of equals the lowest index.
  std::vector<bool> gone(candidates.size(), false);
  std::vector<DetectionRecord> winners;
  while (winners.size() < limit) {
    const Candidate* best = nullptr;
    std::size_t best_at = 0;
    for (const std::size_t i : order) {
      if (gone[i]) continue;
      const Candidate& c = candidates[i];
      if (best == nullptr || c.record.score > best->record.score ||
          (c.record.score == best->record.score && c.index < best->index)) {
        best = &c;
        best_at = i;
      }
    }
    if (best == nullptr) break;
    gone[best_at] = true;
    const DetectionRecord& a = best->record;
    winners.push_back(a);
    const float area_a = (a.x1 - a.x0) * (a.y1 - a.y0);
    for (const std::size_t i : order) {
      const DetectionRecord& b = candidates[i].record;
      if (gone[i] || (!agnostic && a.class_id != b.class_id)) continue;
      float w = (a.x1 < b.x1 ? a.x1 : b.x1) - (a.x0 > b.x0 ? a.x0 : b.x0);
      float h = (a.y1 < b.y1 ? a.y1 : b.y1) - (a.y0 > b.y0 ? a.y0 : b.y0);
      if (w < 0) w = 0;
      if (h < 0) h = 0;
      const float inter = w * h;
      const float area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
      const float joint = area_a + area_b - inter;
      if (inter > threshold * joint) gone[i] = true;
    }
  }
  return winners;
}

Candidate candidate(float x0, float y0, float x1, float y1, float score, int class_id, int index) {
  return {{x0, y0, x1, y1, score, class_id}, index};
}

std::vector<Candidate> random_candidates(std::uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> place(0, 380), side(4, 90);
  std::uniform_int_distribution<int> level(1, 40), class_id(0, 3), corner(0, 12);
  std::vector<Candidate> candidates;
  for (int i = 0; i < count; ++i) {
    // Half of the boxes on a coarse grid: exact ties in score and in overlap.
    const bool coarse = i % 2 == 0;
    const float x = coarse ? 32.0f * float(corner(random)) : place(random);
    const float y = coarse ? 32.0f * float(corner(random)) : place(random);
    const float w = coarse ? 32 : side(random);
    const float h = coarse ? 32 : side(random);
    candidates.push_back(
        candidate(x, y, x + w, y + h, float(level(random)) / 40, class_id(random), i));
  }
  return candidates;
}

class P01 : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<DetectionRecord> run(const std::vector<Candidate>& candidates,
                                   const DecodeOptions& options) {
    const auto block =
        run_detection_job(*device_, {}, options,
                          [candidates](const Access&, std::vector<Candidate>& out) -> Result<void> {
                            out = candidates;
                            return {};
                          });
    if (!block) {
      ADD_FAILURE() << block.error().message();
      return {};
    }
    return {block->records.begin(), block->records.begin() + block->count};
  }

  void expect_reference(const std::vector<Candidate>& candidates, const DecodeOptions& options,
                        const std::string& what) {
    const auto expected = reference(candidates, options.iou_threshold, options.class_agnostic,
                                    static_cast<std::size_t>(options.max_objects));
    const auto actual = run(candidates, options);
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const DetectionRecord &a = actual[i], &b = expected[i];
      ASSERT_EQ(std::tie(a.x0, a.y0, a.x1, a.y1, a.score, a.class_id),
                std::tie(b.x0, b.y0, b.x1, b.y1, b.score, b.class_id))
          << what << ", record " << i;
    }
  }

  const DevicePtr device_ = testing::make_device(GetParam());
};
INSTANTIATE_TEST_SUITE_P(cpu, P01, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P01, ::testing::Values("sim"));

TEST_P(P01, GivenRandomBoxesWithTies_WhenThinned_ThenTheSerialReferenceAgrees) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    const auto candidates = random_candidates(seed, 30 + int(seed) * 7);
    for (const float threshold : {0.0f, 0.3f, 0.5f, 1.0f}) {
      expect_reference(candidates, {.iou_threshold = threshold}, "seed " + std::to_string(seed));
      expect_reference(candidates, {.iou_threshold = threshold, .class_agnostic = true},
                       "agnostic, seed " + std::to_string(seed));
    }
  }
}

TEST_P(P01, GivenAnOverlapExactlyAtTheThreshold_WhenThinned_ThenBothStay) {
  // A 4 x 4 box inside one of 8 x 8: 16 of 64, exactly a quarter.
  const std::vector<Candidate> quarter{candidate(0, 0, 8, 8, 0.9f, 0, 0),
                                       candidate(0, 0, 4, 4, 0.8f, 0, 1)};
  EXPECT_EQ(run(quarter, {.iou_threshold = 0.25f}).size(), 2u);
  EXPECT_EQ(run(quarter, {.iou_threshold = std::nextafter(0.25f, 0.0f)}).size(), 1u);
}

TEST_P(P01, GivenEqualScores_WhenThinned_ThenTheLowerIndexWins) {
  const std::vector<Candidate> tied{candidate(1, 0, 9, 8, 0.5f, 0, 17),
                                    candidate(0, 0, 8, 8, 0.5f, 0, 3)};
  const auto kept = run(tied, {.iou_threshold = 0.5f});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].x0, 0);
}

TEST_P(P01, GivenMoreThanThreeHundredSurvivors_WhenThinned_ThenTheBestThreeHundredAreKept) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < 1000; ++i) {
    const float x = 10.0f * float(i);
    candidates.push_back(candidate(x, 0, x + 5, 5, float((i * 37) % 1000) / 1000, i % 80, i));
  }
  expect_reference(candidates, {}, "1000 apart");
  EXPECT_EQ(run(candidates, {}).size(), 300u);
  EXPECT_EQ(run(candidates, {.max_objects = 7}).size(), 7u);
}

TEST_P(P01, GivenNoCandidates_WhenThinned_ThenNothingComesOut) { EXPECT_TRUE(run({}, {}).empty()); }

TEST_P(P01, GivenMoreThanThePreNmsCap_WhenThinned_ThenOnlyTheBestEnter) {
  // All overlap, in two classes; the weaker class lies wholly behind the cap.
  std::vector<Candidate> candidates;
  for (int i = 0; i < kPreNmsLimit; ++i) {
    candidates.push_back(candidate(0, 0, 8, 8, 0.9f, 0, i));
  }
  candidates.push_back(candidate(0, 0, 8, 8, 0.5f, 1, kPreNmsLimit));
  EXPECT_EQ(run(candidates, {}).size(), 1u);
  candidates.pop_back();
  candidates.back() = candidate(0, 0, 8, 8, 0.5f, 1, kPreNmsLimit - 1);
  EXPECT_EQ(run(candidates, {}).size(), 2u);
}

TEST_P(P01, GivenDegenerateAndHugeBoxes_WhenThinned_ThenTheSerialReferenceAgrees) {
  expect_reference({candidate(5, 5, 5, 5, 0.9f, 0, 0), candidate(5, 5, 5, 5, 0.8f, 0, 1),
                    candidate(9, 9, 1, 1, 0.7f, 0, 2), candidate(0, 0, 8, 8, 0.6f, 0, 3),
                    candidate(-1e30f, -1e30f, 1e30f, 1e30f, 0.5f, 0, 4),
                    candidate(-1e30f, -1e30f, 1e30f, 1e30f, 0.4f, 0, 5)},
                   {}, "degenerate");
}

TEST(P04, GivenNanAndInfiniteCandidates_WhenThinned_ThenTheyNeverWin) {
  std::vector<Candidate> candidates{
      candidate(0, 0, 8, 8, kNan, 0, 0),     candidate(0, 0, 8, 8, kInf, 0, 1),
      candidate(0, 0, 8, 8, -kInf, 0, 2),    candidate(kNan, 0, 8, 8, 0.9f, 0, 3),
      candidate(0, -kInf, 8, 8, 0.9f, 0, 4), candidate(0, 0, kInf, 8, 0.9f, 0, 5),
      candidate(0, 0, 8, kNan, 0.9f, 0, 6),  candidate(0, 0, 8, 8, 0.1f, 0, 7)};
  non_maximum_suppression(candidates, {});
  ASSERT_EQ(candidates.size(), 1u);
  EXPECT_EQ(candidates[0].index, 7);
}

}  // namespace
}  // namespace penstock
