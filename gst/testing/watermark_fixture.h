// SPDX-License-Identifier: Apache-2.0
//
// A penwatermark in a GstHarness on a device.
#pragma once

#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "gst/penwatermark.h"
#include "gst/sharing.h"
#include "gst/storage_memory.h"
#include "gst/testing/infer_fixture.h"
#include "penstock/base/clock.h"
#include "penstock/base/str_format.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock::gst {

inline constexpr int kDrawnWidth = 128;
inline constexpr int kDrawnHeight = 96;

class WatermarkFixture : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    bus_.reset(gst_bus_new());
    allocator_ = new_storage_allocator("PenstockSim");
    if (is_sim()) sim_ = SimDevice::create();
    element_.reset(
        GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make("penwatermark", "drawer"))));
    g_object_set(element_.get(), "device", GetParam(), nullptr);
    gst_element_set_bus(element_.get(), bus_.get());
    if (sim_ != nullptr) {
      gst_element_set_context(element_.get(), make_device_context(sim_).get());
    }
  }
  void TearDown() override {
    if (sim_ != nullptr) sim_->hold_jobs(false);
    harness_.reset();
    gst_element_set_state(element_.get(), GST_STATE_NULL);
    gst_bus_set_flushing(bus_.get(), TRUE);
  }

  bool is_sim() const { return std::string(GetParam()) == "sim"; }
  std::vector<std::string> formats() const {
    if (is_sim()) return {"NV12"};
    return {"NV12", "I420"};
  }
  std::string feature() const { return is_sim() ? "(memory:PenstockSim)" : ""; }
  std::string caps(const std::string& format = "NV12", int width = kDrawnWidth,
                   int height = kDrawnHeight, const std::string& more = "") const {
    return str_format("video/x-raw{},format={},width={},height={},framerate=25/1{}", feature(),
                      format, width, height, more);
  }
  void set(const std::string& property, const std::string& value) {
    gst_util_set_object_arg(G_OBJECT(element_.get()), property.c_str(), value.c_str());
  }
  void play(const std::string& with_caps = "") {
    harness_.reset(gst_harness_new_with_element(element_.get(), "sink", "src"));
    gst_harness_set_src_caps_str(harness_.get(), (with_caps.empty() ? caps() : with_caps).c_str());
  }

  /// Device memory with these bytes.
  StoragePtr storage_with(const std::vector<std::byte>& bytes) {
    auto storage = sim_->allocate(bytes.size());
    EXPECT_TRUE(storage);
    EXPECT_TRUE(sim_->upload({.storage = *storage, .offset = 0, .size = bytes.size()}, bytes,
                             TransferPurpose::kTestContent));
    return *storage;
  }
  BufferPtr make_frame(int number = 0, const std::string& format = "NV12", int width = kDrawnWidth,
                       int height = kDrawnHeight, GObject* display = nullptr) {
    GstVideoInfo info;
    gst_video_info_set_format(&info, gst_video_format_from_string(format.c_str()), guint(width),
                              guint(height));
    // Mid gray, so that every colour that is drawn differs from it.
    const std::vector<std::byte> bytes(info.size, std::byte{128});
    BufferPtr buffer(gst_buffer_new());
    if (sim_ != nullptr) {
      gst_buffer_append_memory(
          buffer.get(),
          wrap_storage(allocator_.get(), storage_with(bytes), info.size, display).release());
    } else {
      gst_buffer_append_memory(buffer.get(), gst_allocator_alloc(nullptr, info.size, nullptr));
      gst_buffer_fill(buffer.get(), 0, bytes.data(), bytes.size());
    }
    GST_BUFFER_PTS(buffer.get()) = GstClockTime(number) * 40 * GST_MSECOND;
    GST_BUFFER_DURATION(buffer.get()) = 40 * GST_MSECOND;
    return buffer;
  }

  GstFlowReturn push(BufferPtr buffer) {
    return gst_harness_push(harness_.get(), buffer.release());
  }
  BufferPtr through(BufferPtr buffer) {
    EXPECT_EQ(push(std::move(buffer)), GST_FLOW_OK);
    return BufferPtr(gst_harness_try_pull(harness_.get()));
  }
  /// The BGRA bytes of an output frame, read as only tests may.
  std::vector<std::uint8_t> pixels(GstBuffer* buffer) {
    std::vector<std::uint8_t> bytes(gst_buffer_get_size(buffer));
    if (const StoragePtr storage = storage_of(gst_buffer_peek_memory(buffer, 0))) {
      EXPECT_TRUE(sim_->read_back(std::as_writable_bytes(std::span(bytes)),
                                  {.storage = storage, .offset = 0, .size = bytes.size()}, {},
                                  TransferPurpose::kTestContent));
    } else {
      EXPECT_EQ(gst_buffer_extract(buffer, 0, bytes.data(), bytes.size()), bytes.size());
    }
    return bytes;
  }

  struct Said {
    GstMessageType type;
    std::string text;
  };
  /// Errors and warnings so far.
  std::vector<Said> said() {
    std::vector<Said> texts;
    while (GstMessage* raw = gst_bus_pop(bus_.get())) {
      const GstPtr<GstMessage> message(raw);
      GError* error = nullptr;
      if (GST_MESSAGE_TYPE(raw) == GST_MESSAGE_ERROR) {
        gst_message_parse_error(raw, &error, nullptr);
      } else if (GST_MESSAGE_TYPE(raw) == GST_MESSAGE_WARNING) {
        gst_message_parse_warning(raw, &error, nullptr);
      } else {
        continue;
      }
      texts.push_back({GST_MESSAGE_TYPE(raw), error->message});
      g_error_free(error);
    }
    return texts;
  }
  guint64 stat(const char* name) {
    GstStructure* raw = nullptr;
    g_object_get(element_.get(), "stats", &raw, nullptr);
    const GstPtr<GstStructure> stats(raw);
    guint64 value = 0;
    guint small = 0;
    if (gst_structure_get_uint64(raw, name, &value)) return value;
    EXPECT_TRUE(gst_structure_get_uint(raw, name, &small)) << name;
    return small;
  }

  std::shared_ptr<SimDevice> sim_;  ///< Null on `cpu`.
  GstPtr<GstAllocator> allocator_;
  GstPtr<GstBus> bus_;
  GstPtr<GstElement> element_;
  HarnessPtr harness_;
};

}  // namespace penstock::gst
