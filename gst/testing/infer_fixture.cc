// SPDX-License-Identifier: Apache-2.0
#include "gst/testing/infer_fixture.h"

#include <gst/video/video.h>
#include <unistd.h>

#include <cstddef>
#include <system_error>

#include "gst/sharing.h"
#include "gst/storage_memory.h"
#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

using model_testing::ConstantBox;

/// Model boxes are the expected ones at half size: "cat" (8, 8)-(24, 32), "dog" (32, 40)-(56, 56).
model_testing::TestModel make_model(int products) {
  const ConstantBox cat{0, 0.9f, 8, 1, 2, 0.5f, 1.5f, 1.5f, 1.5f};
  const ConstantBox dog{1, 0.6f, 8, 5, 5, 1.5f, 0.5f, 1.5f, 1.5f};
  auto model = model_testing::make_constant_nanodet(kModelSide, 2, {cat, dog}, products);
  model.name = "constant";
  model.labels = {"cat", "dog"};
  model.preprocess.fit = Fit::kStretch;
  return model;
}

class ModelFolder {
 public:
  explicit ModelFolder(int products)
      : path_(std::filesystem::temp_directory_path() /
              str_format("penstock-gst-{}-{}", getpid(), products)) {
    write_model_folder(make_model(products), path_);
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

const std::vector<ExpectedBox>& expected_boxes() {
  static const std::vector<ExpectedBox> boxes{{"cat", 16, 16, 32, 48, 0.9f},
                                              {"dog", 64, 80, 48, 32, 0.6f}};
  return boxes;
}

const std::filesystem::path& model_folder() {
  static const ModelFolder folder(0);
  return folder.path();
}

const std::filesystem::path& slow_model_folder() {
  static const ModelFolder folder(30);
  return folder.path();
}

void InferFixture::SetUp() {
  bus_.reset(gst_bus_new());
  sim_allocator_ = new_storage_allocator("PenstockSim");
  if (is_sim()) sim_ = SimDevice::create();
}

void InferFixture::play_to_hold(std::vector<std::string> properties) {
  if (!is_sim()) properties.push_back("model=" + slow_model_folder().string());
  play(properties);
}

void InferFixture::TearDown() {
  if (sim_ != nullptr) sim_->hold_jobs(false);
  harness_.reset();
  // Messages hold the elements that posted them, which hold the bus.
  gst_bus_set_flushing(bus_.get(), TRUE);
}

std::vector<std::string> InferFixture::formats() const {
  if (is_sim()) return {"NV12"};
  return {"NV12", "I420"};
}

std::string InferFixture::caps(const std::string& format, int width, int height,
                               const std::string& more) const {
  return str_format("video/x-raw{},format={},width={},height={},framerate=25/1{}",
                    is_sim() ? "(memory:PenstockSim)" : "", format, width, height, more);
}

GstPtr<GstElement> InferFixture::make_element(const std::vector<std::string>& properties) {
  GstPtr<GstElement> element(
      GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("peninfer", "detector"))));
  g_object_set(element.get(), "model", model_folder().c_str(), "device", GetParam(), nullptr);
  for (const std::string& property : properties) {
    const auto equals = property.find('=');
    gst_util_set_object_arg(G_OBJECT(element.get()), property.substr(0, equals).c_str(),
                            property.substr(equals + 1).c_str());
  }
  gst_element_set_bus(element.get(), bus_.get());
  if (sim_ != nullptr) {
    gst_element_set_context(element.get(), make_device_context(sim_).get());
  }
  return element;
}

void InferFixture::play(const std::vector<std::string>& properties) {
  const GstPtr<GstElement> element = make_element(properties);
  element_ = element.get();
  ASSERT_EQ(gst_element_set_state(element_, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS)
      << ::testing::PrintToString(errors());
  harness_.reset(gst_harness_new_with_element(element_, "sink", "src"));
  gst_harness_set_src_caps_str(harness_.get(), caps(formats().front()).c_str());
}

BufferPtr InferFixture::make_frame(GstClockTime pts, const std::string& format, int width,
                                   int height, int level, GObject* display) {
  GstVideoInfo info;
  gst_video_info_set_format(&info, gst_video_format_from_string(format.c_str()), width, height);
  return make_buffer(std::vector<std::byte>(info.size, std::byte(level)), pts, display);
}

BufferPtr InferFixture::make_buffer(const std::vector<std::byte>& bytes, GstClockTime pts,
                                    GObject* display) {
  BufferPtr buffer(gst_buffer_new());
  if (sim_ != nullptr) {
    const auto storage = sim_->allocate(bytes.size());
    EXPECT_TRUE(storage);
    EXPECT_TRUE(sim_->upload({*storage, 0, bytes.size()}, bytes, TransferPurpose::kTestContent));
    gst_buffer_append_memory(
        buffer.get(),
        wrap_storage(sim_allocator_.get(), *storage, bytes.size(), display).release());
  } else {
    gst_buffer_append_memory(buffer.get(), gst_allocator_alloc(nullptr, bytes.size(), nullptr));
    gst_buffer_fill(buffer.get(), 0, bytes.data(), bytes.size());
  }
  GST_BUFFER_PTS(buffer.get()) = pts;
  GST_BUFFER_DURATION(buffer.get()) = 40 * GST_MSECOND;
  return buffer;
}

std::vector<std::string> InferFixture::errors() { return take_errors(bus_.get()); }

std::vector<std::string> take_errors(GstBus* bus) {
  std::vector<std::string> texts;
  // Not gst_bus_pop_filtered(): it drops other messages, perhaps with the last reference to their
  // element, while it holds the bus's lock, and a dying element posts.
  while (GstMessage* raw = gst_bus_pop(bus)) {
    const GstPtr<GstMessage> message(raw);
    if (GST_MESSAGE_TYPE(raw) != GST_MESSAGE_ERROR) continue;
    GError* error = nullptr;
    gst_message_parse_error(raw, &error, nullptr);
    texts.emplace_back(error->message);
    g_error_free(error);
  }
  return texts;
}

guint64 InferFixture::stat(const char* name) {
  GstStructure* raw = nullptr;
  g_object_get(element_, "stats", &raw, nullptr);
  const GstPtr<GstStructure> stats(raw);
  guint64 value = 0;
  guint small = 0;
  if (gst_structure_get_uint64(raw, name, &value)) return value;
  EXPECT_TRUE(gst_structure_get_uint(raw, name, &small)) << name;
  return small;
}

}  // namespace penstock::gst
