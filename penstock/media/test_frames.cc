// SPDX-License-Identifier: Apache-2.0
#include "penstock/media/test_frames.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>

#include "penstock/memory/sim/sim_device.h"

namespace penstock::testing {
namespace {

// Tests can't go on without these; a failure here is a broken fixture, not a finding.
template <typename T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "fixture: %s\n", result.error().message().c_str());
    std::abort();
  }
  return std::move(*result);
}
void must(Result<void> result) {
  if (!result) {
    std::fprintf(stderr, "fixture: %s\n", result.error().message().c_str());
    std::abort();
  }
}

std::size_t size(int n) { return static_cast<std::size_t>(n); }

void put_rows(std::vector<std::byte>& bytes, const Plane& plane,
              const std::vector<std::uint8_t>& samples, int columns, int rows,
              std::size_t first = 0, std::size_t step = 1) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      bytes[plane.offset + size(row) * plane.stride + first + size(column) * step] =
          std::byte{samples[size(row) * size(columns) + size(column)]};
    }
  }
}

}  // namespace

Picture::Picture(int w, int h, std::uint8_t luma, std::uint8_t cb, std::uint8_t cr)
    : width(w),
      height(h),
      y(size(w) * size(h), luma),
      u(size(w / 2) * size(h / 2), cb),
      v(size(w / 2) * size(h / 2), cr) {}

Picture color_bars(int width, int height) {
  // 75 % white, yellow, cyan, green, magenta, red, blue, black.
  constexpr std::array<std::array<std::uint8_t, 3>, 8> kBars{{{180, 128, 128},
                                                              {168, 44, 136},
                                                              {145, 147, 44},
                                                              {133, 63, 52},
                                                              {63, 193, 204},
                                                              {51, 109, 212},
                                                              {28, 212, 120},
                                                              {16, 128, 128}}};
  Picture picture(width, height);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const auto& bar = kBars[size(column * 8 / width)];
      picture.y_at(column, row) = bar[0];
      if (row % 2 == 0 && column % 2 == 0) {
        const std::size_t chroma = size(row / 2) * size(width / 2) + size(column / 2);
        picture.u[chroma] = bar[1];
        picture.v[chroma] = bar[2];
      }
    }
  }
  return picture;
}

Picture gray_ramp(int width, int height) {
  Picture picture(width, height);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      picture.y_at(column, row) = static_cast<std::uint8_t>(16 + 219 * column / (width - 1));
    }
  }
  return picture;
}

Picture noise(int width, int height, std::uint32_t seed) {
  Picture picture(width, height);
  std::minstd_rand random(seed);
  std::uniform_int_distribution<int> level(0, 255);
  for (auto* samples : {&picture.y, &picture.u, &picture.v}) {
    std::ranges::generate(*samples, [&] { return static_cast<std::uint8_t>(level(random)); });
  }
  return picture;
}

Picture extremes(int width, int height, std::uint32_t seed) {
  Picture picture = noise(width, height, seed);
  for (auto* samples : {&picture.y, &picture.u, &picture.v}) {
    for (std::uint8_t& sample : *samples) sample = sample < 128 ? 0 : 255;
  }
  return picture;
}

Picture chroma_impulse(int width, int height, int cx, int cy) {
  Picture picture(width, height, 120);
  const std::size_t at = size(cy) * size(width / 2) + size(cx);
  picture.u[at] = 208;
  picture.v[at] = 60;
  return picture;
}

DevicePtr make_device(const std::string& device) {
  if (device == "sim") return SimDevice::create();
  return must(open_device({DeviceKind::kCpu, 0}));
}

std::shared_ptr<VideoFrame> make_frame(Device& device, const Picture& picture,
                                       const FrameLayout& layout) {
  auto frame = std::make_shared<VideoFrame>();
  frame->format = layout.format;
  frame->width = picture.width;
  frame->height = picture.height;
  frame->color = layout.color;
  const int half_width = picture.width / 2;
  const int half_height = picture.height / 2;
  const bool nv12 = layout.format == PixelFormat::kNv12;
  for (int p = 0; p < plane_count(layout.format); ++p) {
    Plane& plane = frame->planes[size(p)];
    plane.offset = layout.offset;
    plane.stride = size(p == 0 || nv12 ? picture.width : half_width) + layout.extra_stride;
    const std::size_t rows = size(p == 0 ? picture.height : half_height);
    std::vector<std::byte> bytes(plane.offset + rows * plane.stride, std::byte{0xee});
    if (p == 0) {
      put_rows(bytes, plane, picture.y, picture.width, picture.height);
    } else if (nv12) {
      put_rows(bytes, plane, picture.u, half_width, half_height, 0, 2);
      put_rows(bytes, plane, picture.v, half_width, half_height, 1, 2);
    } else {
      put_rows(bytes, plane, p == 1 ? picture.u : picture.v, half_width, half_height);
    }
    // Ends with the last sample: the sweep has no business behind it.
    bytes.resize(bytes.size() - layout.extra_stride);
    plane.storage = must(device.allocate(bytes.size()));
    must(device.upload({.storage = plane.storage, .offset = 0, .size = bytes.size()}, bytes,
                       TransferPurpose::kTestContent));
  }
  return frame;
}

std::vector<float> read_tensor(Device& device, const Tensor& tensor) {
  std::vector<float> values(tensor.data.size / sizeof(float));
  must(device.read_back(std::as_writable_bytes(std::span(values)), tensor.data, {tensor.ready},
                        TransferPurpose::kTestContent));
  return values;
}

std::vector<std::uint8_t> read_storage(Device& device, const StoragePtr& storage) {
  std::vector<std::uint8_t> bytes(storage->size());
  must(device.read_back(std::as_writable_bytes(std::span(bytes)),
                        {.storage = storage, .offset = 0, .size = bytes.size()}, {},
                        TransferPurpose::kTestContent));
  return bytes;
}

}  // namespace penstock::testing
