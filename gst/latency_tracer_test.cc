// SPDX-License-Identifier: Apache-2.0
//
// The tracer as a user has it: from the plugin, by GST_TRACERS.

// For the list of tracers.
#define GST_USE_UNSTABLE_API
#include <gst/gst.h>
#include <gst/gsttracer.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gst/gst_ptr.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Row {
  guint64 frames = 0, p50 = 0, p95 = 0, max = 0;
};
/// By element's name and stream.
using Rows = std::map<std::pair<std::string, std::string>, Row>;

GstTracer* tracer() {
  GList* const active = gst_tracing_get_active_tracers();
  GstTracer* found = nullptr;
  for (GList* at = active; at != nullptr; at = at->next) {
    if (std::string(G_OBJECT_TYPE_NAME(at->data)) == "PenLatencyTracer") {
      found = GST_TRACER(at->data);
    }
  }
  g_list_free_full(active, gst_object_unref);
  return found;  // GStreamer's, to the end.
}

/// Of elements below `pipeline`.
Rows rows_of(const std::string& pipeline) {
  Rows rows;
  GstStructure* raw = nullptr;
  g_object_get(tracer(), "figures", &raw, nullptr);
  const GstPtr<GstStructure> figures(raw);
  const GValue* const list = gst_structure_get_value(raw, "rows");
  for (guint i = 0; i < gst_value_list_get_size(list); ++i) {
    const GstStructure* const told = gst_value_get_structure(gst_value_list_get_value(list, i));
    const std::string path = gst_structure_get_string(told, "element");
    if (!path.starts_with("/GstPipeline:" + pipeline + "/")) continue;
    Row& row = rows[{path.substr(path.rfind(':') + 1), gst_structure_get_string(told, "stream")}];
    EXPECT_TRUE(gst_structure_get_uint64(told, "frames", &row.frames));
    EXPECT_TRUE(gst_structure_get_uint64(told, "p50", &row.p50));
    EXPECT_TRUE(gst_structure_get_uint64(told, "p95", &row.p95));
    EXPECT_TRUE(gst_structure_get_uint64(told, "max", &row.max));
  }
  return rows;
}

std::vector<std::pair<std::string, Row>> streams_of(const Rows& rows, const std::string& element) {
  std::vector<std::pair<std::string, Row>> found;
  for (const auto& [key, row] : rows) {
    if (key.first == element) found.emplace_back(key.second, row);
  }
  return found;
}

constexpr const char* kVideo = "video/x-raw,format=NV12,width=64,height=64,framerate=25/1";

class LatencyTracerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    g_setenv("GST_PLUGIN_PATH", PENSTOCK_PLUGIN_FOLDER, TRUE);
    g_setenv("GST_TRACERS", "penlatency", TRUE);
    gst_init(nullptr, nullptr);
  }
  void SetUp() override {
    ASSERT_NE(tracer(), nullptr);
    name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  void TearDown() override {
    if (pipeline_ != nullptr) gst_element_set_state(pipeline_.get(), GST_STATE_NULL);
  }
  void build(const std::string& description) {
    GError* error = nullptr;
    pipeline_.reset(gst_parse_launch(description.c_str(), &error));
    ASSERT_EQ(error, nullptr) << error->message;
    gst_object_set_name(GST_OBJECT(pipeline_.get()), name_.c_str());
  }
  void run() {
    gst_element_set_state(pipeline_.get(), GST_STATE_PLAYING);
    const GstPtr<GstBus> bus(gst_element_get_bus(pipeline_.get()));
    const GstPtr<GstMessage> message(gst_bus_timed_pop_filtered(
        bus.get(), 20 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR)));
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(GST_MESSAGE_TYPE(message.get()), GST_MESSAGE_EOS);
  }
  void probe(const char* element, const char* pad_name, GstPadProbeCallback callback,
             gpointer data) {
    const GstPtr<GstElement> of(gst_bin_get_by_name(GST_BIN(pipeline_.get()), element));
    const GstPtr<GstPad> pad(gst_element_get_static_pad(of.get(), pad_name));
    gst_pad_add_probe(pad.get(), GST_PAD_PROBE_TYPE_BUFFER, callback, data, nullptr);
  }

  std::string name_;
  GstPtr<GstElement> pipeline_;
};

/// What a clock beside the tracer saw of a frame.
struct Watch {
  SteadyClock::time_point came;
  std::chrono::nanoseconds longest{};
};

constexpr auto kWork = std::chrono::milliseconds(2);

TEST_F(LatencyTracerTest, GivenAnElementThatWorks_WhenFramesPass_ThenItsTimeIsWhatAClockBesideSaw) {
  build(
      str_format("videotestsrc num-buffers=10 ! capsfilter name=before caps={} ! "
                 "identity name=works ! identity name=idles ! fakesink name=end",
                 kVideo));
  Watch watch;
  probe(
      "before", "sink",
      [](GstPad*, GstPadProbeInfo*, gpointer data) {
        static_cast<Watch*>(data)->came = SteadyClock::now();
        return GST_PAD_PROBE_OK;
      },
      &watch);
  probe(
      "works", "sink",
      [](GstPad*, GstPadProbeInfo*, gpointer) {
        const auto until = SteadyClock::now() + kWork;
        while (SteadyClock::now() < until) {
        }
        return GST_PAD_PROBE_OK;
      },
      nullptr);
  probe(
      "works", "src",
      [](GstPad*, GstPadProbeInfo*, gpointer data) {
        auto& seen = *static_cast<Watch*>(data);
        seen.longest =
            std::max<std::chrono::nanoseconds>(seen.longest, SteadyClock::now() - seen.came);
        return GST_PAD_PROBE_OK;
      },
      &watch);
  run();
  const Rows rows = rows_of(name_);
  const auto works = streams_of(rows, "works");
  ASSERT_EQ(works.size(), 1u);
  EXPECT_FALSE(works[0].first.empty()) << "the stream's id";
  const Row& row = works[0].second;
  EXPECT_EQ(row.frames, 10u);
  EXPECT_GE(row.p50, guint64(std::chrono::nanoseconds(kWork).count()));
  EXPECT_LE(row.p50, row.p95);
  EXPECT_LE(row.p95, row.max);
  EXPECT_LE(row.max, guint64(watch.longest.count()));
  ASSERT_EQ(streams_of(rows, "idles").size(), 1u);
  EXPECT_EQ(streams_of(rows, "idles")[0].second.frames, 10u);
  EXPECT_LT(streams_of(rows, "idles")[0].second.p50, row.p50);
  EXPECT_TRUE(streams_of(rows, "end").empty()) << "a sink lets nothing go";
}

TEST_F(LatencyTracerTest,
       GivenNewMemoryOrNoWayOn_WhenFramesCome_ThenTheFirstIsTimedAndTheOtherNot) {
  build(
      str_format("videotestsrc num-buffers=5 ! {} ! penwatermark name=draws ! "
                 "identity name=drops drop-probability=1 ! fakesink",
                 kVideo));
  run();
  const Rows rows = rows_of(name_);
  ASSERT_EQ(streams_of(rows, "draws").size(), 1u);
  EXPECT_EQ(streams_of(rows, "draws")[0].second.frames, 5u);
  EXPECT_TRUE(streams_of(rows, "drops").empty());
}

TEST_F(LatencyTracerTest, GivenContainers_WhenTheyPass_ThenEachStreamsFramesAreTimed) {
  build(
      str_format("penmux name=m ! identity name=between ! pendemux name=d "
                 "videotestsrc num-buffers=8 ! {0} ! m.sink_0 "
                 "videotestsrc num-buffers=5 ! {0} ! m.sink_1 "
                 "d.src_0 ! queue name=q0 ! fakesink d.src_1 ! queue name=q1 ! fakesink",
                 kVideo));
  run();
  const Rows rows = rows_of(name_);
  for (const char* element : {"m", "between", "d"}) {
    std::vector<guint64> frames;
    for (const auto& [stream, row] : streams_of(rows, element)) frames.push_back(row.frames);
    std::ranges::sort(frames);
    EXPECT_EQ(frames, (std::vector<guint64>{5, 8})) << element;
  }
  const auto between = streams_of(rows, "between");
  ASSERT_EQ(between.size(), 2u);
  EXPECT_TRUE(between[0].first.starts_with("sink_0/")) << between[0].first;
  EXPECT_TRUE(between[1].first.starts_with("sink_1/")) << between[1].first;
  EXPECT_EQ(streams_of(rows, "q0")[0].second.frames, 8u);
}

TEST_F(LatencyTracerTest, GivenAProgramOfOthers_WhenItEnds_ThenTheFileHasALineForEachElement) {
#ifdef __SANITIZE_ADDRESS__
  // The program is the system's gst-launch; without the sanitizers the test runs.
  GTEST_SKIP() << "a program without the sanitizer can't load a plugin with it";
#endif
  const auto file = std::filesystem::path(::testing::TempDir()) / (name_ + ".jsonl");
  std::filesystem::remove(file);
  gchar** environment = g_environ_setenv(g_get_environ(), "GST_TRACERS",
                                         ("penlatency(file=" + file.string() + ")").c_str(), TRUE);
  const std::string command = str_format(
      "gst-launch-1.0 -q videotestsrc num-buffers=4 ! {} ! identity name=x ! fakesink", kVideo);
  gchar** arguments = nullptr;
  ASSERT_TRUE(g_shell_parse_argv(command.c_str(), nullptr, &arguments, nullptr));
  gint status = -1;
  ASSERT_TRUE(g_spawn_sync(nullptr, arguments, environment, G_SPAWN_SEARCH_PATH, nullptr, nullptr,
                           nullptr, nullptr, &status, nullptr));
  g_strfreev(arguments);
  g_strfreev(environment);
  EXPECT_EQ(status, 0);
  std::ifstream lines(file);
  int found = 0;
  simdjson::dom::parser parser;
  for (std::string line; std::getline(lines, line);) {
    simdjson::dom::element row;
    ASSERT_EQ(parser.parse(line).get(row), simdjson::SUCCESS) << line;
    if (!std::string_view(row["element"]).ends_with("GstIdentity:x")) continue;
    ++found;
    EXPECT_EQ(std::uint64_t(row["frames"]), 4u) << line;
    EXPECT_LE(std::uint64_t(row["p50_ns"]), std::uint64_t(row["max_ns"])) << line;
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace penstock::gst
