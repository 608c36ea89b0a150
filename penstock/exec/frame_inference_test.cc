// SPDX-License-Identifier: Apache-2.0
//
// Whole stages on cpu and sim: frames with a coloured square go in, boxes on the square come out,
// and nothing stays behind whatever fails, is cancelled or torn down (contract B01, B03, L03, L04,
// V16).
#include "penstock/exec/frame_inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "penstock/base/usable_cores.h"
#include "penstock/exec/test_runner.h"
#include "penstock/exec/test_squares.h"
#include "penstock/memory/sim/sim_device.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using testing::is_ready;
using testing::kSquareSide;
using testing::make_device;
using testing::nth_square;
using testing::Square;
using testing::square_finder;
using testing::square_frame;
using Future = SharedBatchExecutor::Future;

void expect_found(const Result<InferenceResult>& result, const Square& square) {
  ASSERT_TRUE(result.has_value()) << result.error().message();
  ASSERT_EQ(result->objects.size(), 1u);
  const Detection& found = result->objects.front();
  EXPECT_EQ(found.class_id, square.class_id);
  EXPECT_GT(found.confidence, 0.4f);
  EXPECT_NEAR(found.x, square.x, 1.0f);
  EXPECT_NEAR(found.y, square.y, 1.0f);
  EXPECT_NEAR(found.width, kSquareSide, 1.0f);
  EXPECT_NEAR(found.height, kSquareSide, 1.0f);
}

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  OnDevice() { options.workers = 1; }
  ~OnDevice() override {
    inference.reset();
    if (auto* sim = dynamic_cast<SimDevice*>(device.get())) {
      sim->wait_idle();
      EXPECT_EQ(sim->live_storages(), 0u);
    }
  }

  void open() {
    auto opened = FrameInference::open(device, manifest, options);
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    inference = std::move(*opened);
  }
  Future submit(FramePtr frame, const std::string& source, Generation generation = 0) {
    auto future = inference->executor().submit(
        {.frame = std::move(frame), .roi = {}, .source = {source}, .generation = generation},
        WhenFull::kWait);
    EXPECT_TRUE(future.has_value());
    return std::move(*future);
  }
  void await_running(std::size_t count) {
    while (inference->executor().running() < count) std::this_thread::yield();
  }

  DevicePtr device = make_device(GetParam());
  Manifest manifest = square_finder("exec-" + std::to_string(getpid()));
  InferenceOptions options;
  std::unique_ptr<FrameInference> inference;
};

#define PENSTOCK_SUITE_ON_DEVICES(suite)                          \
  class suite : public OnDevice {};                               \
  INSTANTIATE_TEST_SUITE_P(cpu, suite, ::testing::Values("cpu")); \
  INSTANTIATE_TEST_SUITE_P(sim, suite, ::testing::Values("sim"))

PENSTOCK_SUITE_ON_DEVICES(FrameInferenceTest);
PENSTOCK_SUITE_ON_DEVICES(B01);
PENSTOCK_SUITE_ON_DEVICES(B03);
PENSTOCK_SUITE_ON_DEVICES(L03);
class L04 : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(sim, L04, ::testing::Values("sim"));
PENSTOCK_SUITE_ON_DEVICES(V16);

TEST_P(FrameInferenceTest, GivenSquares_WhenInferred_ThenBoxesLandOnThemInSourcePixels) {
  open();
  for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI420}) {
    for (int i = 0; i < 6; ++i) {
      const Square square = nth_square(31 * i);
      auto result = submit(square_frame(*device, square, format), "a").get();
      expect_found(result, square);
      EXPECT_EQ(result->objects.front().label,
                manifest.labels.at(static_cast<std::size_t>(square.class_id)));
      EXPECT_GT(result->times.infer, Nanoseconds::zero());
      EXPECT_GE(result->times.preprocess, Nanoseconds::zero());
    }
  }
}

TEST_P(FrameInferenceTest, GivenFrameOfAnotherDevice_WhenInferred_ThenTheErrorNamesFrameAndSource) {
  open();
  const DevicePtr other = make_device(std::string(GetParam()) == "cpu" ? "sim" : "cpu");
  auto frame = square_frame(*other, nth_square(0));
  frame->pts_ns = 40'000'000;
  const auto result = submit(std::move(frame), "camera").get();
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message(), HasSubstr("40000000 ns"));
  EXPECT_THAT(result.error().message(), HasSubstr("'camera'"));
  EXPECT_THAT(result.error().message(), HasSubstr(GetParam()));
  expect_found(submit(square_frame(*device, nth_square(1)), "camera").get(), nth_square(1));
}

TEST_P(FrameInferenceTest, GivenRequestWithoutFrame_WhenInferred_ThenInvalidArgument) {
  open();
  const auto result = submit(nullptr, "a").get();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::kInvalidArgument);
}

TEST_P(FrameInferenceTest, GivenTooFewCores_WhenOpenedByPolicy_ThenWorkersFollowTheCoresUsable) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  options.workers = 0;
  options.policy = Policy::kThroughput;
  open();
  const int cores = CPU_COUNT(&before);
  EXPECT_EQ(inference->workers(), std::min(cores, granted_cores().value_or(cores)));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  open();
  EXPECT_EQ(inference->workers(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  options.policy = Policy::kLatency;
  open();
  EXPECT_EQ(inference->workers(), 1);
}

// ---- B01

TEST_P(B01, GivenThreeSourcesAndABatchOfFour_WhenRun_ThenOneBatchOfCopiesGivesEachItsOwn) {
  options.batch_size = 4;
  options.max_wait = Milliseconds(5);
  options.queue_depth = 4;
  open();
  FenceSource gate;
  auto blocker = square_frame(*device, nth_square(0));
  blocker->ready = gate.fence();
  Future first = submit(std::move(blocker), "z");
  await_running(1);  // The worker is busy while the others line up.
  std::vector<Future> futures;
  const std::uint64_t copies = device->ledger().count(CopyClass::kTensor);
  for (int i = 1; i < 4; ++i) {
    futures.push_back(submit(square_frame(*device, nth_square(20 * i)), "s" + std::to_string(i)));
  }
  gate.signal();
  expect_found(first.get(), nth_square(0));
  for (int i = 1; i < 4; ++i) {
    expect_found(futures[static_cast<std::size_t>(i - 1)].get(), nth_square(20 * i));
  }
  EXPECT_EQ(inference->executor().stats().batches, 2u);
  EXPECT_EQ(device->ledger().count(CopyClass::kTensor) - copies, 3u);
}

TEST_P(B01, GivenModelWithAFixedBatch_WhenFewerFramesCome_ThenTheOtherSlotsArePadding) {
  for (auto* specs : {&manifest.inputs, &manifest.outputs}) {
    for (TensorSpec& spec : *specs) spec.dims.at(0) = Dimension::fixed(3);
  }
  options.batch_size = 2;
  open();
  expect_found(submit(square_frame(*device, nth_square(5)), "a").get(), nth_square(5));
}

TEST_P(B01, GivenModelOfBatchOne_WhenOpenedWithMore_ThenInvalidArgumentNamesIt) {
  for (auto* specs : {&manifest.inputs, &manifest.outputs}) {
    for (TensorSpec& spec : *specs) spec.dims.at(0) = Dimension::fixed(1);
  }
  options.batch_size = 2;
  const auto opened = FrameInference::open(device, manifest, options);
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_THAT(opened.error().message(), HasSubstr("batch size 2"));
  EXPECT_THAT(opened.error().message(), HasSubstr("'" + manifest.inputs[0].name + "'"));
}

// ---- B03, L03

TEST_P(B03, GivenFrameWhoseDeviceWorkIsStuck_WhenCancelled_ThenTheFutureFailsAndTheFrameStays) {
  open();
  FenceSource gate;
  auto frame = square_frame(*device, nth_square(0));
  frame->ready = gate.fence();
  const std::weak_ptr<VideoFrame> watch = frame;
  Future running = submit(std::exchange(frame, nullptr), "a", 0);
  await_running(1);
  Future waiting = submit(square_frame(*device, nth_square(1)), "a", 0);
  Future next = submit(square_frame(*device, nth_square(2)), "a", 1);
  inference->executor().cancel({"a"}, 0);
  ASSERT_TRUE(is_ready(running));
  ASSERT_TRUE(is_ready(waiting));
  EXPECT_EQ(running.get().error().kind(), ErrorKind::kCancelled);
  EXPECT_EQ(waiting.get().error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(watch.expired());
  gate.signal();
  expect_found(next.get(), nth_square(2));
  EXPECT_TRUE(watch.expired());
}

TEST_P(L03, GivenWorkInFlight_WhenTornDown_ThenItEndsAndNothingIsLeft) {
  open();
  FenceSource gate;
  auto frame = square_frame(*device, nth_square(7));
  frame->ready = gate.fence();
  const std::weak_ptr<VideoFrame> watch = frame;
  Future running = submit(std::exchange(frame, nullptr), "a");
  await_running(1);
  Future waiting = submit(square_frame(*device, nth_square(8)), "a");
  std::thread teardown([this] { inference.reset(); });
  EXPECT_EQ(waiting.get().error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(watch.expired());
  gate.signal();
  teardown.join();
  EXPECT_TRUE(watch.expired());
  expect_found(running.get(), nth_square(7));
}

TEST(FrameInferenceOnSim, GivenHeldJobs_WhenTornDown_ThenTheirOwnersLiveUntilTheJobsRan) {
  auto device = SimDevice::create({.hold_jobs = false});
  InferenceOptions options;
  options.workers = 2;
  auto inference =
      FrameInference::open(device, square_finder("held-" + std::to_string(getpid())), options)
          .value();
  std::vector<Future> futures;
  std::vector<std::weak_ptr<VideoFrame>> watch;
  std::vector<FramePtr> frames;
  for (int i = 0; i < 2; ++i) frames.push_back(square_frame(*device, nth_square(40 + i)));
  device->hold_jobs(true);
  for (FramePtr& frame : frames) {
    watch.push_back(std::const_pointer_cast<VideoFrame>(frame));
    futures.push_back(
        inference->executor()
            .submit({.frame = std::exchange(frame, nullptr), .roi = {}, .source = {"a"}},
                    WhenFull::kWait)
            .value());
  }
  // Both are with a worker, and the device has work.
  while (inference->executor().running() < 2 || device->jobs_pending() == 0) {
    std::this_thread::yield();
  }
  std::thread teardown([&] { inference.reset(); });
  for (const auto& frame : watch) EXPECT_FALSE(frame.expired());
  device->hold_jobs(false);
  teardown.join();
  device->wait_idle();
  EXPECT_EQ(device->live_storages(), 0u);
  for (int i = 0; i < 2; ++i) {
    expect_found(futures[static_cast<std::size_t>(i)].get(), nth_square(40 + i));
  }
}

// ---- L04

/// The sim device is made to fail its n-th call from here on, for n = 1, 2, ... until one frame
/// passes without meeting the failure. Every failing one must give one error and leave nothing.
TEST_P(L04, GivenOneFrame_WhenTheNthDeviceCallFails_ThenOneErrorAndACleanTeardownForEveryN) {
  const Manifest manifest = square_finder("faults-" + std::to_string(getpid()));
  int failures = 0;
  for (std::uint64_t n = 1; n < 100; ++n) {
    SCOPED_TRACE(::testing::Message() << "call " << n);
    auto device = SimDevice::create({.device = {}, .seed = n});
    InferenceOptions options;
    options.workers = 1;
    auto a = square_frame(*device, nth_square(3));
    auto b = square_frame(*device, nth_square(4));
    device->fail_call(device->calls() + n);
    bool failed = false;
    auto inference = FrameInference::open(device, manifest, options);
    if (inference) {
      SharedBatchExecutor& executor = (*inference)->executor();
      Future first = executor
                         .submit({.frame = std::exchange(a, nullptr), .roi = {}, .source = {"a"}},
                                 WhenFull::kWait)
                         .value();
      const auto result = first.get();
      failed = !result;
      if (!result) {
        EXPECT_THAT(result.error().message(), HasSubstr("source 'a'"));
        EXPECT_NE(result.error().kind(), ErrorKind::kCancelled);
      } else {
        expect_found(result, nth_square(3));
      }
      // A failure is one frame's, not the stage's.
      if (failed) {
        expect_found(executor
                         .submit({.frame = std::exchange(b, nullptr), .roi = {}, .source = {"b"}},
                                 WhenFull::kWait)
                         .value()
                         .get(),
                     nth_square(4));
      }
      inference->reset();
    } else {
      failed = true;
    }
    a.reset();
    b.reset();
    device->wait_idle();
    EXPECT_EQ(device->live_storages(), 0u);
    if (!failed) break;
    ++failures;
  }
  // Allocation and kernel of the input, outputs and run, the block, its job and its read-back.
  EXPECT_GE(failures, 6);
  EXPECT_LT(failures, 99);
}

TEST_P(L04, GivenABatchOfTwo_WhenTheNthDeviceCallFails_ThenEveryFutureEndsOnce) {
  const Manifest manifest = square_finder("batch-faults-" + std::to_string(getpid()));
  int failures = 0;
  for (std::uint64_t n = 1; n < 100; ++n) {
    SCOPED_TRACE(::testing::Message() << "call " << n);
    auto device = SimDevice::create({.device = {}, .seed = n});
    InferenceOptions options;
    options.workers = 1;
    options.batch_size = 2;
    options.max_wait = std::chrono::hours(1);  // Both, or nothing.
    auto inference = FrameInference::open(device, manifest, options).value();
    std::vector<FramePtr> frames{square_frame(*device, nth_square(3)),
                                 square_frame(*device, nth_square(4))};
    device->fail_call(device->calls() + n);
    std::vector<Future> futures;
    for (int i = 0; i < 2; ++i) {
      FramePtr& frame = frames[static_cast<std::size_t>(i)];
      futures.push_back(inference->executor()
                            .submit({.frame = std::exchange(frame, nullptr),
                                     .roi = {},
                                     .source = {"s" + std::to_string(i)}},
                                    WhenFull::kWait)
                            .value());
    }
    int failed = 0;
    for (int i = 0; i < 2; ++i) {
      const auto result = futures[static_cast<std::size_t>(i)].get();
      if (result) {
        expect_found(result, nth_square(3 + i));
      } else {
        ++failed;
        EXPECT_THAT(result.error().message(), HasSubstr("source 's" + std::to_string(i) + "'"));
      }
    }
    inference.reset();
    device->wait_idle();
    EXPECT_EQ(device->live_storages(), 0u);
    if (failed == 0) break;
    ++failures;
  }
  EXPECT_GE(failures, 8);
  EXPECT_LT(failures, 99);
}

// ---- V16

TEST_P(FrameInferenceTest, GivenManyStreamsThatRetire_WhenInferred_ThenNoBookkeepingStays) {
  open();
  for (int i = 0; i < 80; ++i) {
    const std::string source = "s" + std::to_string(i);
    expect_found(submit(square_frame(*device, nth_square(i)), source).get(), nth_square(i));
    inference->executor().retire({source});
  }
  EXPECT_EQ(inference->executor().sources(), 0u);
}

TEST_P(V16, GivenManyFramesInFlight_WhenInferred_ThenNoInputIsOverwrittenByALaterOne) {
  options.workers = 3;
  options.source_share = 64;
  open();
  std::vector<Future> futures;
  std::vector<FenceSource> gates(3);
  for (int i = 0; i < 24; ++i) {
    auto frame = square_frame(*device, nth_square(7 * i));
    // The first of each worker are late, so that the others overtake them.
    if (i < 3) frame->ready = gates[static_cast<std::size_t>(i)].fence();
    futures.push_back(submit(std::move(frame), "a"));
  }
  for (std::size_t i = 3; i > 0; --i) gates[i - 1].signal();
  for (int i = 0; i < 24; ++i) {
    expect_found(futures[static_cast<std::size_t>(i)].get(), nth_square(7 * i));
  }
}

}  // namespace
}  // namespace penstock
