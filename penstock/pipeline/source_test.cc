// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/source.h"

#include <fcntl.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

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

TEST_F(SourceTest, GivenADemuxerThatFindsNothing_WhenItHasStopped_ThenItGaveUp) {
  gst_init(nullptr, nullptr);
  // An MP4 without its index, which lay behind the cut.
  const std::string bytes = std::string(
                                "\0\0\0\x14"
                                "ftypisom\0\0\0\0isom",
                                20) +
                            std::string("\0\0\x40\0mdat", 8) + std::string(4096, 'x');
  const auto path = write("source_test.mp4", bytes);
  GstElement* pipeline = gst_parse_launch(
      ("filesrc location=\"" + path.string() + "\" ! qtdemux name=d").c_str(), nullptr);
  ASSERT_NE(pipeline, nullptr);
  EXPECT_FALSE(demuxer_gave_up(GST_BIN(pipeline)));
  gst_element_set_state(pipeline, GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline);
  GstMessage* message =
      gst_bus_timed_pop_filtered(bus, 60 * GST_SECOND, GstMessageType(GST_MESSAGE_ERROR));
  ASSERT_NE(message, nullptr);
  EXPECT_TRUE(demuxer_gave_up(GST_BIN(pipeline)));
  gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline, GST_STATE_NULL);
  EXPECT_FALSE(demuxer_gave_up(GST_BIN(pipeline)));
  gst_object_unref(pipeline);
}

TEST(WithoutPassword, GivenAddresses_WhenShown_ThenOnlyThePasswordIsGone) {
  EXPECT_EQ(without_password("rtsp://user:secret@host:554/a"), "rtsp://user:***@host:554/a");
  EXPECT_EQ(without_password("rtsp://user:p@ss@host/a"), "rtsp://user:***@host/a");
  EXPECT_EQ(without_password("rtsp://user:se:cret@[::1]:554/a"), "rtsp://user:***@[::1]:554/a");
  EXPECT_EQ(without_password("rtsp://user@host/a"), "rtsp://user@host/a");
  EXPECT_EQ(without_password("rtsp://user:@host/a"), "rtsp://user:@host/a");
  EXPECT_EQ(without_password("rtsp://host:554/a@b"), "rtsp://host:554/a@b");
  EXPECT_EQ(without_password("rtsp://[::1]:554/a@b"), "rtsp://[::1]:554/a@b");
  EXPECT_EQ(without_password("rtsp://host/a:b@c"), "rtsp://host/a:b@c");
  EXPECT_EQ(without_password("a:b@c.mp4"), "a:b@c.mp4");
}

TEST(WithoutPassword, GivenAPasswordThatIsNotEncoded_WhenShown_ThenItIsGone) {
  EXPECT_EQ(without_password("rtsp://user:sec/ret@host/a"), "rtsp://user:***@host/a");
  EXPECT_EQ(without_password("rtsp://user:?sec@ret@host/a"), "rtsp://user:***@host/a");
}

TEST(WithoutPassword, GivenOthersWords_WhenTheyQuoteTheAddress_ThenThePasswordIsGone) {
  const auto source = parse_source("rtsp://user:secret@host/a");
  ASSERT_TRUE(source);
  EXPECT_EQ(source->text, "rtsp://user:***@host/a");
  EXPECT_EQ(source->address, "rtsp://user:secret@host/a");
  EXPECT_EQ(without_password_of(*source, "no answer from rtsp://user:secret@host/a"),
            "no answer from rtsp://user:***@host/a");
  EXPECT_EQ(without_password_of(*source, "rtspt://user:secret@host:554: 'secret'"),
            "rtspt://user:***@host:554: '***'");
  EXPECT_EQ(without_password_of(*parse_source("rtsp://host/a"), "host/a"), "host/a");
  // Too short to tell from the words around it.
  EXPECT_EQ(without_password_of(*parse_source("rtsp://u:a@host"), "a camera u:a@host"),
            "a camera u:***@host");
}

TEST(WithoutPassword, GivenAnotherScheme_WhenRefused_ThenTheMessageHasNoPassword) {
  const auto source = parse_source("http://user:secret@host/a.mp4");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().message().find("secret"), std::string::npos);
  EXPECT_NE(source.error().message().find("http://user:***@host/a.mp4"), std::string::npos);
}

TEST_F(SourceTest, GivenACamera_WhenParsed_ThenTheMessageSaysHowAPipelineTakesIt) {
  for (const auto& [text, device] :
       {std::pair{"v4l2:///dev/video3", "/dev/video3"},
        std::pair{"v4l2:/dev/video3", "/dev/video3"}, std::pair{"v4l2://", "/dev/video0"},
        std::pair{"/dev/video0", "/dev/video0"},
        std::pair{"/dev/v4l/by-id/cam", "/dev/v4l/by-id/cam"}}) {
    const auto camera = parse_source(text);
    ASSERT_FALSE(camera) << text;
    EXPECT_EQ(camera.error().kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(camera.error().message().find(std::string("name: camera, v4l2: ") + device + "}"),
              std::string::npos)
        << camera.error().message();
  }
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
