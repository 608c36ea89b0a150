// SPDX-License-Identifier: Apache-2.0
//
// Frames that share a time or have none, as two frames out of one AVI packet do.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/pipeline/run_job.h"
#include "tests/e2e/clips.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

constexpr int kFrames = 12;
constexpr long long kLength = 40'000'000;

std::optional<FrameReading> read_frame(GstBuffer* buffer) {
  const gst::Analysis* analysis = gst::read_analysis(buffer);
  if (analysis == nullptr) return std::nullopt;
  return FrameReading{&analysis->result, &analysis->times};
}

/// Of three frames the second gets the first one's time and the third none.
GstPadProbeReturn spoil_times(GstPad*, GstPadProbeInfo* info, gpointer) {
  GstBuffer* buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
  const GstClockTime length = GstClockTime(kLength);
  const GstClockTime number = GST_BUFFER_PTS(buffer) / length;
  if (number % 3 == 1) GST_BUFFER_PTS(buffer) = (number - 1) * length;
  if (number % 3 == 2) GST_BUFFER_PTS(buffer) = GST_CLOCK_TIME_NONE;
  GST_PAD_PROBE_INFO_DATA(info) = buffer;
  return GST_PAD_PROBE_OK;
}

GstElement* video_with_spoilt_times() {
  GError* error = nullptr;
  GstElement* bin = gst_parse_bin_from_description(
      "videotestsrc num-buffers=12 ! capsfilter "
      "caps=video/x-raw,format=I420,width=192,height=192,framerate=25/1,colorimetry=bt709",
      TRUE, &error);
  EXPECT_EQ(error, nullptr) << error->message;
  GstPad* src = gst_element_get_static_pad(bin, "src");
  gst_pad_add_probe(src, GST_PAD_PROBE_TYPE_BUFFER, spoil_times, nullptr, nullptr);
  gst_object_unref(src);
  return bin;
}

TEST(FrameTimesRun, GivenFramesThatShareATimeOrHaveNone_WhenRun_ThenTimesGrowInJsonAndVideo) {
  gst_init(nullptr, nullptr);
  ASSERT_TRUE(gst::register_elements(nullptr));
  const std::filesystem::path folder = fresh_folder();
  RunOptions options;
  options.source.kind = SourceKind::kElement;
  options.source.text = "spoilt";
  options.source.make_element = video_with_spoilt_times;
  options.model = square_model(folder);
  options.json = folder / "out.jsonl";
  options.video = folder / "out.mp4";
  options.read_frame = read_frame;
  const RunOutcome outcome = run(options);
  ASSERT_FALSE(outcome.error) << outcome.error->message();
  const auto lines = read_json_lines(options.json);
  ASSERT_EQ(int(lines.size()), kFrames);
  for (int n = 0; n < kFrames; ++n) {
    EXPECT_EQ(lines[std::size_t(n)].pts_ns, n % 3 == 2 ? -1 : n * kLength) << n;
  }
  const Decoded decoded = decode_file(options.video);
  EXPECT_EQ(decoded.error, "");
  EXPECT_EQ(decoded.frames, kFrames);
}

}  // namespace
}  // namespace penstock::e2e
