// SPDX-License-Identifier: Apache-2.0
//
// A peninfer in a GstHarness on a device, with a tiny generated model that answers known boxes.
#pragma once

#include <gst/check/gstharness.h>
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "gst/gst_ptr.h"
#include "penstock/memory/sim/sim_device.h"
#include "penstock/model/testing/test_models.h"

namespace penstock::gst {

/// The texts of the errors on `bus` so far; other messages are dropped.
std::vector<std::string> take_errors(GstBus* bus);

/// The model's input side; frames of twice that give boxes of twice the model's coordinates.
inline constexpr int kModelSide = 64;
inline constexpr int kFrameSide = 2 * kModelSide;

/// The two boxes that the model answers, in pixels of a kFrameSide frame:
/// "cat" (16, 16, 32, 48) at 0.9 and "dog" (64, 80, 48, 32) at 0.6.
struct ExpectedBox {
  const char* label;
  int x, y, width, height;
  float confidence;
};
const std::vector<ExpectedBox>& expected_boxes();

/// A folder with the model, made once a process and removed at its end.
const std::filesystem::path& model_folder();
/// The same boxes from a model whose run takes most of a second or more.
const std::filesystem::path& slow_model_folder();

struct HarnessDeleter {
  void operator()(GstHarness* harness) const { gst_harness_teardown(harness); }
};
using HarnessPtr = std::unique_ptr<GstHarness, HarnessDeleter>;

class InferFixture : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool is_sim() const { return std::string(GetParam()) == "sim"; }
  /// Formats that the device takes.
  std::vector<std::string> formats() const;
  std::string caps(const std::string& format = "NV12", int width = kFrameSide,
                   int height = kFrameSide, const std::string& more = "") const;

  /// A peninfer with bus, model, device and its context set; properties as "name=value" pairs.
  GstPtr<GstElement> make_element(const std::vector<std::string>& properties = {});
  /// The same in a harness, in PLAYING, with caps set.
  void play(const std::vector<std::string>& properties = {});
  /// The same, for runs that are to be in flight: until let_go() on `sim`, on `cpu` for as long as
  /// the slow model takes. Frames that are pushed later have to be made before hold().
  void play_to_hold(std::vector<std::string> properties);
  void hold() {
    if (sim_ != nullptr) sim_->hold_jobs(true);
  }
  void let_go() {
    if (sim_ != nullptr) sim_->hold_jobs(false);
  }
  /// A frame in the device's memory, filled with `level`.
  BufferPtr make_frame(GstClockTime pts, const std::string& format = "NV12", int width = kFrameSide,
                       int height = kFrameSide, int level = 100, GObject* display = nullptr);
  /// The same of `bytes` in the default layout.
  BufferPtr make_buffer(const std::vector<std::byte>& bytes, GstClockTime pts,
                        GObject* display = nullptr);
  static GstClockTime pts(int frame) { return frame * (40 * GST_MSECOND); }

  /// Errors that peninfer has posted so far.
  std::vector<std::string> errors();
  guint64 stat(const char* name);

  std::shared_ptr<SimDevice> sim_;  ///< Null on `cpu`.
  GstPtr<GstAllocator> sim_allocator_;
  GstPtr<GstBus> bus_;
  GstElement* element_ = nullptr;  ///< The harness's.
  HarnessPtr harness_;
};

}  // namespace penstock::gst
