// SPDX-License-Identifier: Apache-2.0
//
// Replays a fuzzer's corpus, also where there is no libFuzzer: a crash that was fixed stays fixed.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

TEST(PENSTOCK_CLAUSE, GivenTheFuzzersCorpus_WhenReplayed_ThenNothingBreaks) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PENSTOCK_CORPUS)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_TRUE(file);
    EXPECT_EQ(
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
        0);
    ++count;
  }
  EXPECT_GE(count, 4);
}

}  // namespace
