// SPDX-License-Identifier: Apache-2.0
//
// What peninfer takes and refuses, seen from its pads.
#include <gst/check/gstharness.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gst/testing/infer_fixture.h"

namespace penstock::gst {
namespace {

using ::testing::Values;

class Negotiation : public InferFixture {
 protected:
  bool send_caps(const std::string& text) {
    const CapsPtr caps(gst_caps_from_string(text.c_str()));
    return gst_harness_push_event(harness_.get(), gst_event_new_caps(caps.get()));
  }

  /// Caps are refused with exactly one error, which names element, device and `field`; frames after
  /// them are refused without another.
  void expect_refused(const std::string& text, const std::string& field) {
    SCOPED_TRACE(text);
    play();
    // A pad keeps sticky events that its peer refused, so pushing them says nothing; the frame
    // does.
    send_caps(text);
    EXPECT_EQ(gst_harness_push(harness_.get(), make_frame(0).release()), GST_FLOW_NOT_NEGOTIATED);
    const auto said = errors();
    ASSERT_EQ(said.size(), 1u);
    for (const std::string& part : {std::string("detector"), std::string(GetParam()), field}) {
      EXPECT_NE(said[0].find(part), std::string::npos) << said[0];
    }
    harness_.reset();
  }
};

class V01 : public Negotiation {};

TEST_P(V01, GivenTheDevicesFrames_WhenNegotiated_ThenAccepted) {
  for (const std::string& format : formats()) {
    play();
    EXPECT_TRUE(send_caps(caps(format)));
    EXPECT_TRUE(errors().empty());
  }
}

TEST_P(V01, GivenRefusedCaps_WhenTheSourceEnds_ThenDownstreamHearsOfTheEnd) {
  play();
  send_caps("audio/x-raw,rate=48000");
  gst_harness_push_event(harness_.get(), gst_event_new_eos());
  bool ended = false;
  // gst_harness_pull_event() waits; null after a minute.
  while (GstEvent* raw = ended ? nullptr : gst_harness_pull_event(harness_.get())) {
    const EventPtr event(raw);
    ended = GST_EVENT_TYPE(raw) == GST_EVENT_EOS;
  }
  EXPECT_TRUE(ended);
}

TEST_P(V01, GivenAnotherDevicesMemory_WhenNegotiated_ThenTheFeatureIsNamed) {
  const std::string rest = ",format=NV12,width=128,height=128,framerate=25/1";
  const char* const foreign = is_sim() ? "memory:SystemMemory" : "memory:PenstockSim";
  expect_refused(std::string("video/x-raw(") + foreign + ")" + rest, foreign);
  expect_refused("video/x-raw(memory:DMABuf)" + rest, "memory:DMABuf");
  expect_refused("video/x-raw(memory:CUDAMemory)" + rest, "memory:CUDAMemory");
}

TEST_P(V01, GivenAnotherFormat_WhenNegotiated_ThenTheFormatIsNamed) {
  for (const char* format : {"P010_10LE", "BGRA", "YV12", "NV21", "Y444"}) {
    expect_refused(caps(format), std::string("format '") + format);
  }
  if (is_sim()) expect_refused(caps("I420"), "format 'I420'");
}

TEST_P(V01, GivenAnotherMediaType_WhenNegotiated_ThenItIsNamed) {
  expect_refused("audio/x-raw,rate=48000", "audio/x-raw");
}

TEST_P(V01, GivenPads_WhenAskedForCaps_ThenOnlyTheDevicesAreOffered) {
  const GstPtr<GstElement> element = make_element();
  for (const char* name : {"sink", "src"}) {
    const GstPtr<GstPad> pad(gst_element_get_static_pad(element.get(), name));
    const CapsPtr offered(gst_pad_query_caps(pad.get(), nullptr));
    const std::string video =
        is_sim() ? "video/x-raw(memory:PenstockSim),format=NV12" : "video/x-raw,format={NV12,I420}";
    const CapsPtr own(gst_caps_from_string(
        (video + ";multistream/x-analytics-batch(meta:GstAnalyticsBatchMeta)").c_str()));
    EXPECT_TRUE(gst_caps_is_equal(offered.get(), own.get()));
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, V01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V01, Values("sim"));

class V02 : public Negotiation {};

TEST_P(V02, GivenAnOddSize_WhenNegotiated_ThenTheSideIsNamed) {
  expect_refused(caps("NV12", 127, 128), "width 127");
  expect_refused(caps("NV12", 128, 127), "height 127");
}

TEST_P(V02, GivenInterlacedVideo_WhenNegotiated_ThenTheModeIsNamed) {
  for (const char* mode : {"interleaved", "mixed"}) {
    expect_refused(caps("NV12", 128, 128, std::string(",interlace-mode=") + mode),
                   std::string("interlace-mode '") + mode);
  }
  play();
  EXPECT_TRUE(send_caps(caps("NV12", 128, 128, ",interlace-mode=progressive")));
}

TEST_P(V02, GivenHdrOrAnotherMatrix_WhenNegotiated_ThenTheColorimetryIsNamed) {
  for (const char* color : {"bt2100-pq", "bt2100-hlg", "bt2020", "smpte240m", "1:3:14:1"}) {
    expect_refused(caps("NV12", 128, 128, std::string(",colorimetry=(string)") + color),
                   "colorimetry");
  }
}

TEST_P(V02, GivenMatrix601Or709_WhenNegotiated_ThenAccepted) {
  for (const char* color : {"bt601", "bt709", "1:3:5:1", "1:4:0:0"}) {
    play();
    EXPECT_TRUE(send_caps(caps("NV12", 128, 128, std::string(",colorimetry=(string)") + color)))
        << color;
    EXPECT_TRUE(errors().empty());
  }
}

TEST_P(V02, GivenAnotherChromaSite_WhenNegotiated_ThenItIsNamed) {
  for (const char* site : {"dv", "cosited", "alt-line", "v-cosited"}) {
    expect_refused(caps("NV12", 128, 128, std::string(",chroma-site=") + site), "chroma-site");
  }
}

TEST_P(V02, GivenRefusableCaps_WhenOnlyAskedAbout_ThenNoErrorIsPosted) {
  play();
  const CapsPtr odd(gst_caps_from_string(caps("NV12", 127, 128).c_str()));
  const CapsPtr even(gst_caps_from_string(caps("NV12", 126, 128).c_str()));
  EXPECT_FALSE(gst_pad_peer_query_accept_caps(harness_->srcpad, odd.get()));
  EXPECT_TRUE(gst_pad_peer_query_accept_caps(harness_->srcpad, even.get()));
  EXPECT_TRUE(errors().empty());
}

INSTANTIATE_TEST_SUITE_P(cpu, V02, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, V02, Values("sim"));

}  // namespace
}  // namespace penstock::gst
