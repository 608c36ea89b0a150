// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace penstock {
namespace {

class SourceTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
};

TEST_F(SourceTest, GivenAddresses_WhenParsed_ThenTheKindIsRight) {
  EXPECT_EQ(parse_source("rtsp://host/stream")->kind, SourceKind::kRtsp);
  EXPECT_EQ(parse_source("rtsps://host/stream")->kind, SourceKind::kRtsp);
  const std::string path = write("source_test.bin", "x").string();
  EXPECT_EQ(parse_source(path)->kind, SourceKind::kFile);
  EXPECT_EQ(parse_source("file://" + path)->file, path);
  EXPECT_EQ(parse_source("http://host/a.mp4").error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(parse_source("").error().kind(), ErrorKind::kInvalidArgument);
}

TEST_F(SourceTest, GivenUnusableFiles_WhenParsed_ThenTheCauseIsNamed) {
  const auto missing = parse_source("/no/such/file.mp4");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::kNotFound);
  EXPECT_NE(missing.error().message().find("/no/such/file.mp4"), std::string::npos);

  const auto folder = parse_source(testing::TempDir());
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind(), ErrorKind::kNotFound);

  const auto empty = parse_source(write("source_empty.mp4", "").string());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().kind(), ErrorKind::kCorrupt);
  EXPECT_NE(empty.error().message().find("is empty"), std::string::npos);
}

TEST_F(SourceTest, GivenAFifoWithoutWriter_WhenParsed_ThenItIsKeptOpenWithoutWaitingForOne) {
  const std::filesystem::path fifo = std::filesystem::path(testing::TempDir()) / "source.fifo";
  std::filesystem::remove(fifo);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto source = parse_source(fifo.string());
  ASSERT_TRUE(source);
  EXPECT_EQ(source->kind, SourceKind::kFile);
  // A writer that does not wait finds a reader only while somebody has the FIFO open for reading.
  EXPECT_TRUE(UniqueFd(::open(fifo.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK)).is_valid());
}

}  // namespace
}  // namespace penstock
