// SPDX-License-Identifier: Apache-2.0
//
// Contract P02 for text recognition: scores of steps written down by hand, lines read by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "penstock/task/test_extras.h"

namespace penstock {
namespace {

using testing::Extras;
using ::testing::HasSubstr;
using testing::Output;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Blank, a, b, and a character of two bytes.
constexpr std::size_t kClasses = 4;

class P02 : public Extras {
 protected:
  static Manifest reader(const std::vector<Output>& outputs) {
    Manifest made = manifest("ctc", "text-recognition", outputs, 0);
    made.labels = {"<blank>", "a", "b", "\xc3\xa9"};
    return made;
  }
  static std::vector<Output> steps(const std::vector<std::vector<float>>& scores) {
    Output output{{1, static_cast<std::int64_t>(scores.size()), kClasses}, {}};
    for (const auto& step : scores) {
      output.values.insert(output.values.end(), step.begin(), step.end());
    }
    return {output};
  }
  Result<Decoded> read(const std::vector<std::vector<float>>& scores, float threshold = 0) {
    const auto outputs = steps(scores);
    return decode(reader(outputs), outputs, {.threshold = threshold});
  }

  void expect_line(const Result<Decoded>& got,
                   const std::vector<std::pair<int, float>>& characters) {
    ASSERT_TRUE(got) << got.error().message();
    ASSERT_EQ(got->characters.size(), characters.size());
    for (std::size_t i = 0; i < characters.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(got->characters[i].class_id, characters[i].first);
      EXPECT_FLOAT_EQ(got->characters[i].score, characters[i].second);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(cpu, P02, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P02, ::testing::Values("sim"));

TEST_P(P02, GivenStepsOfALine_WhenRead_ThenRepeatsCountOnceAndBlanksPartThem) {
  auto got = read({{0.1f, 0.6f, 0.1f, 0.2f},  // a
                   {0, 0.9f, 0.1f, 0},        // the same a
                   {0.8f, 0.1f, 0.1f, 0},     // blank
                   {0, 0.7f, 0.3f, 0},        // another a
                   {0, 0, 0.5f, 0.3f},        // b
                   {0, 0, 0.9f, 0.1f},        // the same b
                   {0.1f, 0, 0, 0.8f},        // e with an accent
                   {0.9f, 0.1f, 0, 0}});      // blank
  expect_line(got, {{1, 0.6f}, {1, 0.7f}, {2, 0.5f}, {3, 0.8f}});
  const Letterbox all{};
  const auto findings = to_findings(*std::move(got), all, {"<blank>", "a", "b", "\xc3\xa9"});
  ASSERT_EQ(findings.texts.size(), 1u);
  EXPECT_EQ(findings.texts[0].text, "aab\xc3\xa9");
  EXPECT_FLOAT_EQ(findings.texts[0].confidence, 0.65f);
}

TEST_P(P02, GivenEqualScores_WhenRead_ThenTheLowerClassIsReadAndBlankBeforeAny) {
  expect_line(read({{0.1f, 0.2f, 0.4f, 0.4f}}), {{2, 0.4f}});
  expect_line(read({{0.4f, 0.4f, 0.1f, 0.1f}}), {});
}

TEST_P(P02, GivenNoCharacter_WhenRead_ThenThereIsNoLine) {
  auto got = read({{0.9f, 0.1f, 0, 0}, {0.9f, 0.1f, 0, 0}});
  expect_line(got, {});
  EXPECT_TRUE(to_findings(*std::move(got), {}, {}).texts.empty());
}

TEST_P(P02, GivenAThreshold_WhenRead_ThenTheMeanOfTheLineMustReachIt) {
  const std::vector<std::vector<float>> scores{{0, 0.5f, 0, 0}, {0, 0, 0.75f, 0}};
  expect_line(read(scores, 0.625f), {{1, 0.5f}, {2, 0.75f}});
  expect_line(read(scores, 0.626f), {});
}

TEST_P(P02, GivenLogits_WhenRead_ThenScoresAreTheirSoftmax) {
  const auto outputs = steps({{0, std::log(6.0f), 0, std::log(2.0f)},  // 6 of 1 + 6 + 1 + 2
                              {0, 0, 300, 0},  // all of it; its exponential is no float
                              {0, 0, kNan, std::log(3.0f)}});  // 3 of 5
  Manifest logits = reader(outputs);
  logits.scores = ScoreKind::kLogits;
  expect_line(decode(logits, outputs, {.threshold = 0}), {{1, 0.6f}, {2, 1}, {3, 0.6f}});
}

TEST_P(P02, GivenNaNOrInfinity_WhenRead_ThenTheyNeverWinAndALineWithAStepOfNothingElseIsUnusable) {
  for (const float bad : {kNan, kInf, -kInf}) {
    expect_line(read({{bad, 0.1f, 0.2f, bad}}), {{2, 0.2f}});
    expect_line(read({{0.3f, bad, 0.2f, 0.1f}}), {});
    const auto got = read({{0, 1, 0, 0}, {bad, bad, bad, bad}});
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(got->unusable, "output 'out': a step has no finite score");
    EXPECT_TRUE(got->characters.empty());
  }
}

TEST_P(P02, GivenTheLongestLine_WhenRead_ThenEveryCharacterComesOutAndAStepMoreIsRefused) {
  std::vector<std::vector<float>> scores;
  for (int i = 0; i < 4096; ++i) {
    scores.push_back(i % 2 == 0 ? std::vector<float>{0, 1, 0, 0} : std::vector<float>{0, 0, 1, 0});
  }
  const auto got = read(scores);
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->characters.size(), 4096u);
  scores.push_back({0, 1, 0, 0});
  const auto longer = read(scores);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().kind(), ErrorKind::kExhausted);
}

TEST_P(P02, GivenASecondBatchItem_WhenRead_ThenItsOwnStepsAreRead) {
  const std::vector<Output> both{
      testing::batched(steps({{0, 1, 0, 0}})[0], steps({{0, 0, 0.5f, 0}})[0])};
  expect_line(decode(reader(both), both, {.threshold = 0}, 1), {{2, 0.5f}});
  EXPECT_FALSE(decode(reader(both), both, {.threshold = 0}, 2));
}

TEST_P(P02, GivenOutputsOrLabelsThatDoNotFit_WhenOpened_ThenTheErrorSaysWhy) {
  const auto refusal = [](const Manifest& manifest) {
    const auto decoder = create_decoder(manifest, {});
    return decoder ? std::string("opened") : decoder.error().message();
  };
  const auto of_shape = [](const Shape& shape) { return reader({Output{shape, {}}}); };
  EXPECT_EQ(refusal(of_shape({1, 40, 4})), "opened");
  EXPECT_EQ(refusal(of_shape({-1, -1, 4})), "opened");
  EXPECT_THAT(refusal(of_shape({1, 40, 5})), HasSubstr("4 labels for 5 classes"));
  EXPECT_THAT(refusal(of_shape({40, 4})), HasSubstr("[N,steps,classes]"));
  Manifest unnamed = of_shape({1, 40, 4});
  unnamed.labels.clear();
  EXPECT_THAT(refusal(unnamed), HasSubstr("the first for the blank"));
  Manifest classifier = of_shape({1, 40, 4});
  classifier.task = "classification";
  EXPECT_THAT(refusal(classifier), HasSubstr("text-recognition"));
  Manifest halves = of_shape({1, 40, 4});
  halves.outputs[0].type = DataType::kInt64;
  EXPECT_THAT(refusal(halves), HasSubstr("not float32"));
}

}  // namespace
}  // namespace penstock
