// SPDX-License-Identifier: Apache-2.0
//
// A03: what a sweep costs: at most four rows of scratch, allocated once, and in the ledger one
// sweep a frame and no copy.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "penstock/media/preprocessor.h"
#include "penstock/media/test_frames.h"

namespace {

// Every operator new of this program, while a test counts. The size lies in front of the block.
std::atomic<bool> g_counting{false};
std::atomic<std::size_t> g_live{0};
std::atomic<std::size_t> g_peak{0};
std::atomic<std::size_t> g_total{0};

struct alignas(std::max_align_t) Header {
  void* block;
  std::size_t counted;
};

void* counted_new(std::size_t size, std::size_t alignment) {
  const std::size_t room = size + sizeof(Header) + alignment;
  void* block = std::malloc(room);
  if (block == nullptr) throw std::bad_alloc();
  const auto start = reinterpret_cast<std::uintptr_t>(block) + sizeof(Header);
  const auto aligned = (start + alignment - 1) / alignment * alignment;
  auto* header = reinterpret_cast<Header*>(aligned) - 1;
  *header = {block, g_counting ? size : 0};
  const std::size_t live = g_live += header->counted;
  if (live > g_peak) g_peak = live;
  g_total += header->counted;
  return reinterpret_cast<void*>(aligned);
}

void counted_delete(void* pointer) noexcept {
  if (pointer == nullptr) return;
  const auto* header = static_cast<Header*>(pointer) - 1;
  g_live -= header->counted;
  std::free(header->block);
}

constexpr std::size_t kDefaultAlignment = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t size) { return counted_new(size, kDefaultAlignment); }
void* operator new[](std::size_t size) { return counted_new(size, kDefaultAlignment); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted_new(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted_new(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* pointer) noexcept { counted_delete(pointer); }
void operator delete[](void* pointer) noexcept { counted_delete(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { counted_delete(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { counted_delete(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { counted_delete(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { counted_delete(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept {
  counted_delete(pointer);
}
void operator delete[](void* pointer, std::size_t, std::align_val_t) noexcept {
  counted_delete(pointer);
}

namespace penstock {
namespace {

using testing::Picture;

// Counts what the code under test allocates, itself and from the device.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(DevicePtr device) : device_(std::move(device)) {}

  DeviceId id() const override { return device_->id(); }
  Result<StoragePtr> allocate(std::size_t bytes) override {
    const bool counting = g_counting.exchange(false);  // the device's own bookkeeping
    sizes.push_back(bytes);
    auto storage = device_->allocate(bytes);
    g_counting = counting;
    return storage;
  }
  Result<Fence> submit(std::vector<Owner> uses, std::vector<Fence> after, Job job) override {
    return device_->submit(std::move(uses), std::move(after), std::move(job));
  }
  Result<Fence> copy(StorageRegion to, StorageRegion from, std::vector<Fence> after) override {
    return device_->copy(std::move(to), std::move(from), std::move(after));
  }
  Result<void> read_back(std::span<std::byte> to, StorageRegion from,
                         const std::vector<Fence>& after, TransferPurpose purpose) override {
    return device_->read_back(to, std::move(from), after, purpose);
  }
  Result<void> upload(StorageRegion to, std::span<const std::byte> from,
                      TransferPurpose purpose) override {
    return device_->upload(std::move(to), from, purpose);
  }
  CopyLedger& ledger() override { return device_->ledger(); }

  std::vector<std::size_t> sizes;  // of every allocate()

 private:
  const DevicePtr device_;
};

PreprocessSpec spec_of(int width, int height, Fit fit) {
  PreprocessSpec spec;
  spec.width = width;
  spec.height = height;
  spec.fit = fit;
  return spec;
}

bool sweep(Preprocessor& preprocessor, const FramePtr& frame) {
  const auto result = preprocessor.run(frame);
  return result && result->tensor.ready.wait();
}

class A03 : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(cpu, A03, ::testing::Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, A03, ::testing::Values("sim"));

TEST_P(A03, GivenAWideFrame_WhenSwept_ThenAtMostFourRowsAreAllocatedAndNoneLater) {
  // A wide frame and a narrow input: the tables are small beside one row of the frame.
  constexpr int kWidth = 8192;
  constexpr std::size_t kRowBytes = kWidth * sizeof(std::int16_t);
  for (const PixelFormat format : {PixelFormat::kNv12, PixelFormat::kI420}) {
    const auto device = std::make_shared<CountingDevice>(testing::make_device(GetParam()));
    const auto frame =
        testing::make_frame(*device, testing::noise(kWidth, 64, 22), {.format = format});
    device->sizes.clear();
    g_live = g_peak = g_total = 0;
    g_counting = true;
    auto preprocessor = Preprocessor::create(device, spec_of(64, 64, Fit::kStretch));
    bool good = preprocessor && sweep(**preprocessor, frame);
    const std::size_t first = g_peak;
    g_total = 0;
    good = good && sweep(**preprocessor, frame);
    const std::size_t later = g_total;
    g_counting = false;
    ASSERT_TRUE(good);
    EXPECT_LE(first, 4 * kRowBytes);
    EXPECT_GE(first, std::size_t{1024}) << "the hook saw nothing, not even the tables";
    EXPECT_LT(later, kRowBytes / 4) << "scratch is not for one frame";
    // From the device: the two tensors and nothing else.
    EXPECT_EQ(device->sizes, (std::vector<std::size_t>(2, 64 * 64 * 3 * sizeof(float))));
  }
}

TEST_P(A03, GivenTenFrames_WhenSwept_ThenTheLedgerHasTenSweepsAndNoFrameCopy) {
  const auto device = testing::make_device(GetParam());
  const auto preprocessor = Preprocessor::create(device, spec_of(24, 24, Fit::kStretch));
  ASSERT_TRUE(preprocessor);
  for (int i = 0; i < 10; ++i) {
    const auto result = (*preprocessor)->run(testing::make_frame(*device, Picture(48, 48)));
    ASSERT_TRUE(result);
    ASSERT_TRUE(result->tensor.ready.wait());
  }
  EXPECT_EQ(device->ledger().count(CopyClass::kSweep), 10u);
  EXPECT_EQ(device->ledger().bytes(CopyClass::kSweep), 10u * 48 * 48 * 3 / 2);
  EXPECT_EQ(device->ledger().count(CopyClass::kFrame), 0u);
  EXPECT_EQ(device->ledger().count(CopyClass::kTensor), 0u);
}

}  // namespace
}  // namespace penstock
