// SPDX-License-Identifier: Apache-2.0
//
// The disk fills up in the middle of a run: the lines that fitted are whole, the other outputs are
// closed, the error comes once.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/pipeline/run_job.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

/// The real disk, until `room` bytes have been written.
class FillingDisk final : public FileOps {
 public:
  explicit FillingDisk(std::size_t room) : room_(room) {}
  Result<UniqueFd> create(const std::filesystem::path& path) override {
    return FileOps::system().create(path);
  }
  Result<void> write_all(int fd, std::span<const std::byte> bytes) override {
    if (bytes.size() > room_) return fail(ErrorKind::kExhausted, "No space left on device");
    room_ -= bytes.size();
    return FileOps::system().write_all(fd, bytes);
  }
  Result<void> sync(int fd) override { return FileOps::system().sync(fd); }
  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return FileOps::system().rename(from, to);
  }

 private:
  std::size_t room_;
};

std::optional<FrameReading> read_frame(GstBuffer* buffer) {
  const gst::Analysis* analysis = gst::read_analysis(buffer);
  if (analysis == nullptr) return std::nullopt;
  return FrameReading{&analysis->result, &analysis->times};
}

GstPadProbeReturn count_buffer(GstPad*, GstPadProbeInfo*, gpointer count) {
  ++*static_cast<std::atomic<int>*>(count);
  return GST_PAD_PROBE_OK;
}

/// Video without end. `accepted` counts the frames that the pad behind it takes, which are not
/// those that come after its EOS.
GstElement* endless_video(std::atomic<int>& accepted) {
  GError* error = nullptr;
  GstElement* bin = gst_parse_bin_from_description(
      "videotestsrc ! capsfilter "
      "caps=video/x-raw,format=I420,width=192,height=192,framerate=25/1,colorimetry=bt709",
      TRUE, &error);
  EXPECT_EQ(error, nullptr) << error->message;
  GstPad* src = gst_element_get_static_pad(bin, "src");
  const auto watch_peer = +[](GstPad*, GstPad* peer, gpointer count) {
    gst_pad_add_probe(peer, GST_PAD_PROBE_TYPE_BUFFER, count_buffer, count, nullptr);
  };
  g_signal_connect(src, "linked", G_CALLBACK(watch_peer), &accepted);
  gst_object_unref(src);
  return bin;
}

TEST(FullDisk, GivenAVideoThatCantBeWritten_WhenRunning_ThenEveryAcceptedFrameHasItsJsonLine) {
  gst_init(nullptr, nullptr);
  ASSERT_TRUE(gst::register_elements(nullptr));
  const std::filesystem::path folder = fresh_folder();
  std::atomic<int> accepted{0};
  RunOptions options;
  options.source.kind = SourceKind::kElement;
  options.source.text = "endless";
  options.source.make_element = [&accepted] { return endless_video(accepted); };
  options.model = square_model(folder);
  options.json = folder / "out.jsonl";
  options.video = "/dev/full";
  options.read_frame = read_frame;
  const RunOutcome outcome = run(options);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.failed, RunPart::kOutputWrite);
  EXPECT_NE(outcome.error->message().find("/dev/full"), std::string::npos);
  EXPECT_GE(accepted.load(), 1) << outcome.error->message();
  EXPECT_EQ(int(read_json_lines(options.json).size()), accepted.load());
}

TEST(FullDisk, GivenJsonThatNoLongerFits_WhenRunning_ThenTheRunEndsAndTheVideoIsWhole) {
  gst_init(nullptr, nullptr);
  ASSERT_TRUE(gst::register_elements(nullptr));
  const std::filesystem::path folder = fresh_folder();
  // A line has about 190 bytes and the buffer 64 KiB: 1000 frames need several writes.
  const std::filesystem::path clip = square_mp4(folder, 1000);
  FillingDisk disk(100 << 10);
  RunOptions options;
  options.source = *parse_source(clip.string());
  options.model = square_model(folder);
  options.json = folder / "out.jsonl";
  options.video = folder / "out.mp4";
  options.files = &disk;
  options.read_frame = read_frame;
  const RunOutcome outcome = run(options);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.failed, RunPart::kOutputWrite);
  EXPECT_EQ(outcome.error->kind(), ErrorKind::kExhausted);
  EXPECT_NE(outcome.error->message().find("out.jsonl"), std::string::npos);
  const std::string text = read_text(options.json);
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n');
  const auto lines = read_json_lines(options.json);
  EXPECT_LT(lines.size(), 1000u);
  for (std::size_t n = 0; n < lines.size(); ++n) EXPECT_EQ(lines[n].frame, (long long)n);
  const Decoded decoded = decode_file(options.video);
  EXPECT_EQ(decoded.error, "");
  EXPECT_GE(decoded.frames, int(lines.size()));
}

}  // namespace
}  // namespace penstock::e2e
