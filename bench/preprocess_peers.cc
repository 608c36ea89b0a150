// SPDX-License-Identifier: Apache-2.0
#include "bench/preprocess_peers.h"

#include <gst/video/video.h>

#include <array>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace penstock::bench {
namespace {

constexpr float kPadding = 114.0f / 255.0f;

/// The tensor with its padding, and views of where the scaled picture lies in each channel.
class Canvas {
 public:
  explicit Canvas(const Letterbox& box)
      : values_(3 * static_cast<std::size_t>(box.input_width) *
                    static_cast<std::size_t>(box.input_height),
                kPadding) {
    const auto plane = values_.size() / 3;
    for (std::size_t c = 0; c < 3; ++c) {
      const cv::Mat whole(box.input_height, box.input_width, CV_32FC1, values_.data() + c * plane);
      views_[c] = whole(cv::Rect(box.pad_x, box.pad_y, box.scaled_width, box.scaled_height));
    }
  }
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  void store(std::span<const cv::Mat, 3> rgb) {
    for (std::size_t c = 0; c < 3; ++c) rgb[c].convertTo(views_[c], CV_32F, 1.0 / 255.0);
  }
  std::span<const float> values() const { return values_; }

 private:
  std::vector<float> values_;
  std::array<cv::Mat, 3> views_;
};

cv::Mat plane(const RawFrame& frame, std::size_t offset, int divisor, int type) {
  auto* data = const_cast<std::uint8_t*>(frame.samples.data()) + offset;
  return cv::Mat(frame.height / divisor, frame.width / divisor, type, data);
}

/// Interleaved RGB to the tensor. Splitting bytes before widening them is the faster order.
class RgbToCanvas {
 public:
  explicit RgbToCanvas(const Letterbox& box) : canvas_(box) {}
  std::span<const float> store(const cv::Mat& rgb) {
    cv::split(rgb, bytes_.data());
    canvas_.store(bytes_);
    return canvas_.values();
  }

 private:
  Canvas canvas_;
  std::array<cv::Mat, 3> bytes_;
};

class PlanesFirst final : public PreprocessPeer {
 public:
  PlanesFirst(const RawFrame& frame, const Letterbox& box)
      : frame_(frame),
        size_(box.scaled_width, box.scaled_height),
        half_(box.scaled_width / 2, box.scaled_height / 2),
        scaled_(box.scaled_height * 3 / 2, box.scaled_width, CV_8UC1),
        out_(box) {}
  std::string_view name() const override { return "opencv-planes-first"; }

  std::span<const float> run() override {
    const auto luma =
        static_cast<std::size_t>(frame_.width) * static_cast<std::size_t>(frame_.height);
    cv::Mat y(size_, CV_8UC1, scaled_.data);
    cv::resize(plane(frame_, 0, 1, CV_8UC1), y, size_, 0, 0, cv::INTER_LINEAR);
    std::uint8_t* chroma = scaled_.data + size_.area();
    if (frame_.format == PixelFormat::kNv12) {
      cv::Mat uv(half_, CV_8UC2, chroma);
      cv::resize(plane(frame_, luma, 2, CV_8UC2), uv, half_, 0, 0, cv::INTER_LINEAR);
      cv::cvtColorTwoPlane(y, uv, rgb_, cv::COLOR_YUV2RGB_NV12);
    } else {
      cv::Mat u(half_, CV_8UC1, chroma);
      cv::Mat v(half_, CV_8UC1, chroma + half_.area());
      cv::resize(plane(frame_, luma, 2, CV_8UC1), u, half_, 0, 0, cv::INTER_LINEAR);
      cv::resize(plane(frame_, luma + luma / 4, 2, CV_8UC1), v, half_, 0, 0, cv::INTER_LINEAR);
      cv::cvtColor(scaled_, rgb_, cv::COLOR_YUV2RGB_I420);
    }
    return out_.store(rgb_);
  }

 private:
  const RawFrame& frame_;
  const cv::Size size_, half_;
  cv::Mat scaled_;  // I420 or NV12 at the scaled size.
  cv::Mat rgb_;
  RgbToCanvas out_;
};

class ConvertFirst final : public PreprocessPeer {
 public:
  ConvertFirst(const RawFrame& frame, const Letterbox& box)
      : frame_(frame), size_(box.scaled_width, box.scaled_height), out_(box) {}
  std::string_view name() const override { return "opencv-convert-first"; }

  std::span<const float> run() override {
    const cv::Mat yuv(frame_.height * 3 / 2, frame_.width, CV_8UC1,
                      const_cast<std::uint8_t*>(frame_.samples.data()));
    const bool nv12 = frame_.format == PixelFormat::kNv12;
    cv::cvtColor(yuv, full_, nv12 ? cv::COLOR_YUV2RGB_NV12 : cv::COLOR_YUV2RGB_I420);
    cv::resize(full_, scaled_, size_, 0, 0, cv::INTER_LINEAR);
    return out_.store(scaled_);
  }

 private:
  const RawFrame& frame_;
  const cv::Size size_;
  cv::Mat full_, scaled_;
  RgbToCanvas out_;
};

struct FreeConverter {
  void operator()(GstVideoConverter* converter) const { gst_video_converter_free(converter); }
};
struct UnrefBuffer {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
};

/// A buffer mapped once, as inside an element that gets it again and again.
class MappedFrame {
 public:
  MappedFrame(GstBuffer* buffer, GstVideoInfo info, GstMapFlags flags) : buffer_(buffer) {
    mapped_ = gst_video_frame_map(&frame_, &info, buffer, flags);
  }
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;
  ~MappedFrame() {
    if (mapped_) gst_video_frame_unmap(&frame_);
  }
  bool mapped() const { return mapped_; }
  GstVideoFrame* get() { return &frame_; }

 private:
  std::unique_ptr<GstBuffer, UnrefBuffer> buffer_;
  GstVideoFrame frame_{};
  bool mapped_ = false;
};

class ConvertScale final : public PreprocessPeer {
 public:
  ConvertScale(const RawFrame& frame, const Letterbox& box) : box_(box), canvas_(box) {
    GstVideoInfo in, out;
    const bool nv12 = frame.format == PixelFormat::kNv12;
    gst_video_info_set_format(&in, nv12 ? GST_VIDEO_FORMAT_NV12 : GST_VIDEO_FORMAT_I420,
                              guint(frame.width), guint(frame.height));
    gst_video_colorimetry_from_string(&in.colorimetry, GST_VIDEO_COLORIMETRY_BT601);
    gst_video_info_set_format(&out, GST_VIDEO_FORMAT_RGBP, guint(box.scaled_width),
                              guint(box.scaled_height));
    GstBuffer* source = gst_buffer_new_wrapped_full(
        GST_MEMORY_FLAG_READONLY, const_cast<std::uint8_t*>(frame.samples.data()),
        frame.samples.size(), 0, frame.samples.size(), nullptr, nullptr);
    source_ = std::make_unique<MappedFrame>(source, in, GST_MAP_READ);
    target_ = std::make_unique<MappedFrame>(gst_buffer_new_allocate(nullptr, out.size, nullptr),
                                            out, GST_MAP_WRITE);
    converter_.reset(gst_video_converter_new(
        &in, &out,
        gst_structure_new("options", GST_VIDEO_CONVERTER_OPT_RESAMPLER_METHOD,
                          GST_TYPE_VIDEO_RESAMPLER_METHOD, GST_VIDEO_RESAMPLER_METHOD_LINEAR,
                          GST_VIDEO_CONVERTER_OPT_THREADS, G_TYPE_UINT, 1u, nullptr)));
  }
  bool ready() const { return converter_ && source_->mapped() && target_->mapped(); }
  std::string_view name() const override { return "videoconvertscale"; }

  std::span<const float> run() override {
    gst_video_converter_frame(converter_.get(), source_->get(), target_->get());
    std::array<cv::Mat, 3> planes;
    for (std::size_t c = 0; c < 3; ++c) {
      planes[c] = cv::Mat(box_.scaled_height, box_.scaled_width, CV_8UC1,
                          GST_VIDEO_FRAME_COMP_DATA(target_->get(), c),
                          std::size_t(GST_VIDEO_FRAME_COMP_STRIDE(target_->get(), c)));
    }
    canvas_.store(planes);
    return canvas_.values();
  }

 private:
  const Letterbox box_;
  Canvas canvas_;
  std::unique_ptr<MappedFrame> source_, target_;
  std::unique_ptr<GstVideoConverter, FreeConverter> converter_;
};

}  // namespace

RawFrame::RawFrame(const testing::Picture& picture, PixelFormat pixel_format)
    : width(picture.width), height(picture.height), format(pixel_format), samples(picture.y) {
  if (format == PixelFormat::kI420) {
    samples.insert(samples.end(), picture.u.begin(), picture.u.end());
    samples.insert(samples.end(), picture.v.begin(), picture.v.end());
    return;
  }
  for (std::size_t i = 0; i < picture.u.size(); ++i) {
    samples.push_back(picture.u[i]);
    samples.push_back(picture.v[i]);
  }
}

std::unique_ptr<PreprocessPeer> make_opencv_planes_first(const RawFrame& frame,
                                                         const Letterbox& box) {
  return std::make_unique<PlanesFirst>(frame, box);
}

std::unique_ptr<PreprocessPeer> make_opencv_convert_first(const RawFrame& frame,
                                                          const Letterbox& box) {
  return std::make_unique<ConvertFirst>(frame, box);
}

Result<std::unique_ptr<PreprocessPeer>> make_videoconvertscale(const RawFrame& frame,
                                                               const Letterbox& box) {
  auto peer = std::make_unique<ConvertScale>(frame, box);
  if (!peer->ready()) return fail(ErrorKind::kUnsupported, "no GstVideoConverter for the frame");
  return peer;
}

}  // namespace penstock::bench
