// SPDX-License-Identifier: Apache-2.0
#include "penstock/exec/preprocessor_cache.h"

#include <gtest/gtest.h>

#include <string>

#include "penstock/media/test_frames.h"

namespace penstock {
namespace {

class PreprocessorCacheTest : public ::testing::Test {
 protected:
  std::shared_ptr<Preprocessor> get(const std::string& source) {
    return cache.get({source}).value();
  }
  PreprocessorCache cache{testing::make_device("cpu"),
                          {.input_name = "x", .width = 32, .height = 32}};
};

TEST_F(PreprocessorCacheTest, GivenTwoStreams_WhenAsked_ThenEachHasItsOwnForAsLongAsItLives) {
  const auto a = get("a");
  EXPECT_NE(a, get("b"));
  EXPECT_EQ(a, get("a"));
  cache.drop({"b"});
  EXPECT_EQ(a, get("a"));
  cache.drop({"a"});
  EXPECT_NE(a, get("a"));
}

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
