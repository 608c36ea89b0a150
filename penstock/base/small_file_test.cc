// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace penstock {
namespace {

class SmallFile : public ::testing::Test {
 protected:
  SmallFile() {
    std::string name = (std::filesystem::temp_directory_path() / "small-file-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~SmallFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path file(const std::string& text) const {
    std::ofstream(folder_ / "file", std::ios::binary) << text;
    return folder_ / "file";
  }

  std::filesystem::path folder_;
};

TEST_F(SmallFile, GivenAsManyBytesAsAllowed_WhenRead_ThenTheyAreAllThere) {
  const std::string text("a\0b\n", 4);
  EXPECT_EQ(read_small_file(file(text), 4), text);
  EXPECT_EQ(read_small_file(file(""), 4), "");
  EXPECT_EQ(read_small_file(file(""), 0), "");
}

TEST_F(SmallFile, GivenOneByteMore_WhenRead_ThenTheLimitIsNamed) {
  const auto text = read_small_file(file("abcde"), 4);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind(), ErrorKind::kCorrupt);
  EXPECT_NE(text.error().message().find("more than 4 bytes"), std::string::npos)
      << text.error().message();
}

TEST_F(SmallFile, GivenWhatIsNoRegularFile_WhenRead_ThenItIsRefusedAtOnce) {
  const std::filesystem::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::filesystem::path& path : {fifo, std::filesystem::path("/dev/zero"), folder_}) {
    const auto text = read_small_file(path, 4);
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().kind(), ErrorKind::kInvalidArgument) << path;
  }
}

TEST_F(SmallFile, GivenNoFile_WhenRead_ThenItIsNotFound) {
  const auto text = read_small_file(folder_ / "none", 4);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(read_small_file(file("x") / "below", 4).error().kind(), ErrorKind::kNotFound);
}

}  // namespace
}  // namespace penstock
