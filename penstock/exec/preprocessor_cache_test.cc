// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/preprocessor_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "penstock/exec/frame_inference.h"
#include "penstock/exec/test_squares.h"
#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

class V06 : public ::testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<Preprocessor> get(const std::string& source) {
    return cache.get({source}).value();
  }
  /// A frame of `source` through a whole stage.
  void infer(FrameInference& inference, const std::string& source) {
    const auto result =
        inference.executor()
            .submit({.frame = testing::square_frame(*device, testing::nth_square(0)),
                     .roi = {},
                     .source = {source}},
                    WhenFull::kWait)
            ->get();
    ASSERT_TRUE(result.has_value()) << result.error().message();
    EXPECT_EQ(result->objects.size(), 1u);
  }

  DevicePtr device = testing::make_device(GetParam());
  PreprocessorCache cache{device, {.input_name = "x", .width = 32, .height = 32}};
};

TEST_P(V06, GivenTwoStreams_WhenAsked_ThenEachHasItsOwnForAsLongAsItLives) {
  const auto a = get("a");
  const auto b = get("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(a, get("a"));
  EXPECT_EQ(b, get("b"));
  EXPECT_EQ(cache.made(), 2u);
}

TEST_P(V06, GivenTwoStreams_WhenOneBeginsANewLife_ThenItsOwnIsMadeAnewAndNoOther) {
  const auto a = get("a");
  const auto b = get("b");
  cache.drop({"b"});
  EXPECT_EQ(a, get("a"));
  EXPECT_NE(b, get("b"));
  EXPECT_EQ(cache.made(), 3u);
  EXPECT_EQ(a, get("a"));
  EXPECT_EQ(cache.made(), 3u);
}

TEST_P(V06, GivenTwoStreamsOfAStage_WhenOneIsFollowedByAnother_ThenOnePreprocessorIsMade) {
  const auto inference =
      FrameInference::open(device, testing::square_finder("v06-" + std::to_string(getpid())),
                           {.workers = 1})
          .value();
  for (const char* source : {"a", "b", "a", "b"}) infer(*inference, source);
  EXPECT_EQ(inference->preprocessors(), 2u);
  inference->executor().retire({"b"});
  infer(*inference, "b's next");
  EXPECT_EQ(inference->preprocessors(), 3u);
  for (const char* source : {"a", "b's next"}) infer(*inference, source);
  EXPECT_EQ(inference->preprocessors(), 3u);
  // An old name is a new stream.
  infer(*inference, "b");
  EXPECT_EQ(inference->preprocessors(), 4u);
}

INSTANTIATE_TEST_SUITE_P(cpu, V06, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V06, ::testing::Values("sim"));

// What bounds the cache is the same on every device.
class PreprocessorCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<Preprocessor> get(const std::string& source) {
    return cache.get({source}).value();
  }
  PreprocessorCache cache{testing::make_device("cpu"),
                          {.input_name = "x", .width = 32, .height = 32}};
};

TEST_F(PreprocessorCacheTest, GivenMoreStreamsThanItsLimit_WhenAsked_ThenTheLeastRecentlyUsedGoes) {
  const auto kept = get("kept");
  const std::weak_ptr<Preprocessor> oldest = get("oldest");
  for (std::size_t i = 0; i < PreprocessorCache::kMaxStreams - 2; ++i) {
    get("s" + std::to_string(i));
  }
  EXPECT_EQ(get("kept"), kept);
  EXPECT_FALSE(oldest.expired());
  get("one more");
  EXPECT_TRUE(oldest.expired());
  EXPECT_EQ(get("kept"), kept);
  EXPECT_EQ(cache.size(), PreprocessorCache::kMaxStreams);
}

TEST_F(PreprocessorCacheTest, GivenImpossibleInput_WhenAsked_ThenItsErrorComesOut) {
  PreprocessorCache wrong(testing::make_device("cpu"),
                          {.input_name = "x", .width = 0, .height = 1});
  EXPECT_FALSE(wrong.get({"a"}).has_value());
  EXPECT_EQ(wrong.size(), 0u);
}

}  // namespace
}  // namespace penstock
