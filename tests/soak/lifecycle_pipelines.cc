// SPDX-License-Identifier: Apache-2.0
#include "tests/soak/lifecycle_pipelines.h"

#include <unistd.h>

#include <cstdio>
#include <system_error>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/picture_readers.h"
#include "penstock/model/testing/test_models.h"

namespace penstock {
namespace {

using gst::GstPtr;

/// The detector's input side.
constexpr int kModelSide = 64;

int below(std::mt19937& random, int limit) { return int(random() % unsigned(limit)); }
const char* either(std::mt19937& random, const char* one, const char* other) {
  return below(random, 2) == 0 ? one : other;
}

class Writer {
 public:
  Writer(const std::string& device, const LifecycleModels& models, std::mt19937& random)
      : device_(device), models_(models), random_(random) {}

  std::string source(int number) {
    const bool sim = device_ == "sim";
    return str_format(
        "videotestsrc name=source{} num-buffers={} pattern={} ! "
        "video/x-raw,format={},width={},height={},framerate=25/1 {}",
        number, yes() ? -1 : below(random_, 30), either(random_, "ball", "smpte"),
        sim ? "NV12" : either(random_, "NV12", "I420"), 64 + 32 * below(random_, 4),
        64 + 32 * below(random_, 3), sim ? "! simupload " : "");
  }
  std::string detector(const std::string& more = {}) {
    return stage(models_.detector(), str_format("interval={} {}", 1 + below(random_, 3), more));
  }
  std::string second() {
    return stage(models_.second(),
                 str_format("roi=objects reinfer-interval={}", below(random_, 4)));
  }
  std::string tiles() {
    return detector(
        str_format("roi=tiles tiles={}x{}", 1 + below(random_, 3), 1 + below(random_, 2)));
  }
  static std::string tracker() { return "! pentrack confirm-frames=1 "; }
  static std::string zones() {
    return "! penzone zones=\"left: 0,0 0.5,0 0.5,1 0,1\" lines=\"middle: 0.5,0 0.5,1\" ";
  }
  std::string end(bool async) {
    return str_format("! penwatermark device={} ! fakesink sync=false async={}", device_,
                      async ? "true" : "false");
  }
  std::string mux() {
    return str_format("penmux name=mux max-wait={} queue-depth={} ", below(random_, 3) * 1000000,
                      1 + below(random_, 3));
  }
  bool yes() { return below(random_, 2) == 0; }

 private:
  std::string stage(const std::string& model, const std::string& more) {
    return str_format(
        "! peninfer model={} device={} policy={} workers={} queue-depth={} batch-size={} {} ",
        model, device_, either(random_, "latency", "throughput"), 1 + below(random_, 2),
        1 + below(random_, 8), 1 + below(random_, 4), more);
  }

  const std::string& device_;
  const LifecycleModels& models_;
  std::mt19937& random_;
};

GstPtr<GstElement> parse(const std::string& text) {
  GError* error = nullptr;
  GstElement* made = gst_parse_launch(text.c_str(), &error);
  GstPtr<GstElement> pipeline;
  if (made != nullptr) pipeline.reset(GST_ELEMENT(gst_object_ref_sink(made)));
  if (error == nullptr) return pipeline;
  std::printf("%s: %s\n", text.c_str(), error->message);
  g_clear_error(&error);
  return nullptr;
}

/// The branch of "src_N" is called "branch_N"; it waits for the stream each time it comes.
void link_branch(GstElement*, GstPad* pad, gpointer pipeline) {
  const std::string name = std::string("branch") + (GST_OBJECT_NAME(pad) + 3);
  const GstPtr<GstElement> branch(gst_bin_get_by_name(GST_BIN(pipeline), name.c_str()));
  const GstPtr<GstPad> sink(gst_element_get_static_pad(branch.get(), "sink"));
  gst_pad_link(pad, sink.get());
}

bool add_branches(GstElement* pipeline, Writer& writer, int streams) {
  for (int i = 0; i < streams; ++i) {
    const std::string text = "identity " + Writer::tracker() + Writer::zones() + writer.end(false);
    GstElement* branch = gst_parse_bin_from_description(text.c_str(), TRUE, nullptr);
    if (branch == nullptr) return false;
    gst_object_set_name(GST_OBJECT(branch), str_format("branch_{}", i).c_str());
    gst_bin_add(GST_BIN(pipeline), branch);
  }
  const GstPtr<GstElement> demux(gst_bin_get_by_name(GST_BIN(pipeline), "demux"));
  g_signal_connect(demux.get(), "pad-added", G_CALLBACK(link_branch), pipeline);
  return true;
}

GstPtr<GstElement> make_containers(Writer& writer, int streams) {
  std::string text = writer.mux() + writer.detector();
  if (writer.yes()) text += writer.second();
  text += "! pendemux name=demux ";
  for (int i = 0; i < streams; ++i) text += writer.source(i) + str_format("! mux.sink_{} ", i);
  auto pipeline = parse(text);
  if (pipeline == nullptr || !add_branches(pipeline.get(), writer, streams)) return nullptr;
  return pipeline;
}

GstPtr<GstElement> make_chain(PipelineShape shape, Writer& writer) {
  std::string text = writer.source(0);
  text += shape == PipelineShape::kTiles ? writer.tiles() : writer.detector();
  text += Writer::tracker();
  if (shape == PipelineShape::kObjects) text += writer.second();
  return parse(text + Writer::zones() + writer.end(writer.yes()));
}

}  // namespace

const char* to_string(PipelineShape shape) {
  switch (shape) {
    case PipelineShape::kSingle:
      return "single";
    case PipelineShape::kContainers:
      return "containers";
    case PipelineShape::kObjects:
      return "objects";
    case PipelineShape::kTiles:
      return "tiles";
  }
  return "";
}

LifecycleModels::LifecycleModels()
    : folder_(std::filesystem::temp_directory_path() /
              str_format("soak-lifecycle-{}", ::getpid())) {
  using model_testing::ConstantBox;
  const ConstantBox cat{0, 0.9f, 8, 1, 2, 0.5f, 1.5f, 1.5f, 1.5f};
  const ConstantBox dog{1, 0.6f, 8, 5, 5, 1.5f, 0.5f, 1.5f, 1.5f};
  auto detector = model_testing::make_constant_nanodet(kModelSide, 2, {cat, dog});
  detector.name = "detector";
  detector.labels = {"cat", "dog"};
  auto second = model_testing::make_picture_reader(model_testing::PictureReader::kCenterLogits, 32);
  second.name = "second";
  detector_ = model_testing::write_model_folder(detector, folder_ / "detector").string();
  second_ = model_testing::write_model_folder(second, folder_ / "second").string();
}

LifecycleModels::~LifecycleModels() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

LifecyclePipeline make_lifecycle_pipeline(PipelineShape shape, const std::string& device,
                                          const LifecycleModels& models, std::mt19937& random) {
  Writer writer(device, models, random);
  const int streams = shape == PipelineShape::kContainers ? 1 + below(random, 3) : 1;
  LifecyclePipeline made;
  made.pipeline = shape == PipelineShape::kContainers ? make_containers(writer, streams)
                                                      : make_chain(shape, writer);
  for (int i = 0; made.pipeline != nullptr && i < streams; ++i) {
    const GstPtr<GstElement> source(
        gst_bin_get_by_name(GST_BIN(made.pipeline.get()), str_format("source{}", i).c_str()));
    made.sources.push_back(source.get());
  }
  return made;
}

}  // namespace penstock
