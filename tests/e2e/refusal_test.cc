// SPDX-License-Identifier: Apache-2.0
//
// Video that peninfer refuses from a source that does not mind: it posts no error of its own and
// comes to its end. The refusal must fail the run all the same.
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "gst/penanalysis_meta.h"
#include "gst/register.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/run_job.h"
#include "tests/e2e/penstock_process.h"

namespace penstock::e2e {
namespace {

/// A bin of this gst-launch description whose flow goes on whatever peninfer says.
GstElement* untroubled(const std::string& description) {
  GError* error = nullptr;
  GstElement* bin = gst_parse_bin_from_description(
      (description + " ! errorignore convert-to=ok").c_str(), TRUE, &error);
  EXPECT_EQ(error, nullptr) << (error != nullptr ? error->message : "");
  g_clear_error(&error);
  return bin;
}

/// Five frames; BT.2020 is a matrix that peninfer refuses and the checks before it let through.
std::string frames(const std::string& colorimetry) {
  return str_format(
      "videotestsrc num-buffers=5 ! capsfilter "
      "caps=video/x-raw,format=I420,width=64,height=64,framerate=25/1,colorimetry={}",
      colorimetry);
}

class RefusalTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    ASSERT_TRUE(gst::register_elements(nullptr));
    folder_ = fresh_folder();
  }
  RunOutcome run_source(const std::string& description, const std::filesystem::path& video = {}) {
    RunOptions options;
    options.source.kind = SourceKind::kElement;
    options.source.text = "untroubled";
    options.source.make_element = [description] { return untroubled(description); };
    options.model = square_model(folder_);
    options.json = folder_ / "out.jsonl";
    options.video = video;
    options.read_frame = [](GstBuffer* buffer) -> std::optional<FrameReading> {
      const gst::Analysis* analysis = gst::read_analysis(buffer);
      if (analysis == nullptr) return std::nullopt;
      return FrameReading{&analysis->result, &analysis->times};
    };
    return run(options);
  }
  void expect_refused(const RunOutcome& outcome) {
    ASSERT_TRUE(outcome.error);
    // Together these are exit code 65.
    EXPECT_EQ(outcome.failed, RunPart::kSource);
    EXPECT_EQ(outcome.error->kind(), ErrorKind::kUnsupported);
    EXPECT_NE(outcome.error->message().find("colorimetry 'bt2020'"), std::string::npos)
        << outcome.error->message();
  }
  std::filesystem::path folder_;
};

TEST_F(RefusalTest, GivenRefusedVideo_WhenItsSourceEndsInPeace_ThenTheRunFailsWithTheReason) {
  expect_refused(run_source(frames("bt2020")));
  EXPECT_TRUE(read_json_lines(folder_ / "out.jsonl").empty());
}

TEST_F(RefusalTest, GivenVideoRefusedMidway_WhenItsSourceEndsInPeace_ThenTheRunFailsWithTheReason) {
  expect_refused(run_source(frames("bt709") + " ! c.sink_0 " + frames("bt2020") +
                            " ! c.sink_1 concat name=c"));
  EXPECT_EQ(read_json_lines(folder_ / "out.jsonl").size(), 5u);
}

TEST_F(RefusalTest, GivenAnMp4Output_WhenRefusedVideoEndsInPeace_ThenTheReasonIsStillTheRefusal) {
  expect_refused(run_source(frames("bt2020"), folder_ / "out.mp4"));
}

}  // namespace
}  // namespace penstock::e2e
