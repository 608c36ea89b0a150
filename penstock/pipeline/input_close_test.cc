// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/input_close.h"

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace penstock {
namespace {

using std::chrono::seconds;

/// What keeps the element below from closing.
struct Door {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;

  void set_open(bool value) {
    const std::lock_guard lock(mutex);
    open = value;
    changed.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
  }
};
Door door;

GstElementClass* parent = nullptr;

/// An element that stays in READY until the door opens.
struct Stuck {
  GstElement element;
};
struct StuckClass {
  GstElementClass parent;
};
G_DEFINE_TYPE(Stuck, stuck, GST_TYPE_ELEMENT)

void stuck_init(Stuck*) {}
void stuck_class_init(StuckClass* klass) {
  parent = GST_ELEMENT_CLASS(stuck_parent_class);
  GST_ELEMENT_CLASS(klass)->change_state = [](GstElement* element, GstStateChange change) {
    if (change == GST_STATE_CHANGE_READY_TO_NULL) door.pass();
    return parent->change_state(element, change);
  };
}

class InputCloseTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    pipeline_ = gst_pipeline_new(nullptr);
    input_ = GST_ELEMENT(g_object_new(stuck_get_type(), nullptr));
    sink_ = gst_element_factory_make("fakesink", nullptr);
    gst_bin_add_many(GST_BIN(pipeline_), input_, sink_, nullptr);
    ASSERT_NE(gst_element_set_state(pipeline_, GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  }
  void TearDown() override {
    door.set_open(true);
    while (left_inputs() > 0) std::this_thread::yield();
    gst_element_set_state(pipeline_, GST_STATE_NULL);
    gst_object_unref(pipeline_);
  }
  GstElement* pipeline_ = nullptr;
  GstElement* input_ = nullptr;
  GstElement* sink_ = nullptr;
};

TEST_F(InputCloseTest, GivenAnInputThatCloses_WhenClosed_ThenAllIsClosedAndNothingIsLeft) {
  EXPECT_TRUE(close_with_input(pipeline_, input_, Clock::system(), seconds(60)));
  EXPECT_EQ(GST_STATE(input_), GST_STATE_NULL);
  EXPECT_EQ(GST_STATE(sink_), GST_STATE_NULL);
  EXPECT_EQ(GST_ELEMENT_PARENT(input_), pipeline_);
  EXPECT_EQ(left_inputs(), 0);
}

TEST_F(InputCloseTest, GivenAnInputThatHangs_WhenTheTimeIsOver_ThenTheRestIsClosedWithoutIt) {
  door.set_open(false);
  ManualClock clock;
  GstElement* input = GST_ELEMENT(gst_object_ref(input_));
  std::thread passing([&clock] {
    clock.await_waiters(1);
    clock.advance(seconds(3));
  });
  EXPECT_FALSE(close_with_input(pipeline_, input_, clock, seconds(3)));
  passing.join();
  EXPECT_EQ(GST_STATE(sink_), GST_STATE_NULL);
  EXPECT_EQ(GST_OBJECT_PARENT(input), nullptr) << "it is out of the pipeline";
  EXPECT_EQ(left_inputs(), 1);
  door.set_open(true);
  while (left_inputs() > 0) std::this_thread::yield();
  EXPECT_EQ(GST_STATE(input), GST_STATE_NULL) << "its thread went on";
  gst_object_unref(input);
}

}  // namespace
}  // namespace penstock
