// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/upstream_copies.h"

#include <gst/gst.h>
#include <gtest/gtest.h>

#include "penstock/pipeline/known_copy.h"

namespace penstock {
namespace {

class UpstreamCopiesTest : public testing::Test {
 protected:
  void SetUp() override { gst_init(nullptr, nullptr); }
};

TEST_F(UpstreamCopiesTest, GivenADecoderThatCopies_WhenCounted_ThenEveryCopyIsThere) {
  const UpstreamCopies copies;
  EXPECT_FALSE(copies.is_known()) << "nothing was decoded";
  EXPECT_EQ(copies.copied(), 0u);
  for (int n = 0; n < 3; ++n) ASSERT_TRUE(decode_with_a_copy());
  EXPECT_TRUE(copies.is_known());
  EXPECT_EQ(copies.decoded(), 3u);
  EXPECT_EQ(copies.copied(), 3u);
}

TEST_F(UpstreamCopiesTest, GivenOtherWordsForACopy_WhenFramesAreCopied_ThenNothingIsClaimed) {
  for (const CopyWords& words : {CopyWords{.copied = "an output buffer is wanted"},
                                 CopyWords{.copying = "allocate_and_copy"}}) {
    const UpstreamCopies copies(words);
    ASSERT_TRUE(decode_with_a_copy());
    EXPECT_EQ(copies.decoded(), 1u);
    EXPECT_FALSE(copies.is_known()) << "a copy that is not noticed is not no copy";
  }
}

TEST_F(UpstreamCopiesTest, GivenOtherWordsForDecoding_WhenFramesAreCopied_ThenNothingIsClaimed) {
  const UpstreamCopies copies({.decoded = "repeats:"});
  ASSERT_TRUE(decode_with_a_copy());
  EXPECT_FALSE(copies.is_known());
}

}  // namespace
}  // namespace penstock
