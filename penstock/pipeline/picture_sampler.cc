// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/picture_sampler.h"

#include <gst/video/video.h>

#include <algorithm>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {
constexpr std::uint64_t kWantedPictures = 6;
constexpr int kPictureWidth = 640;
constexpr GstClockTime kEncodeTimeout = 10 * GST_SECOND;
}  // namespace

PictureSampler::PictureSampler(std::uint64_t total_frames)
    : step_(total_frames == 0 ? 32 : std::max<std::uint64_t>(1, total_frames / kWantedPictures)) {}

PictureSampler::~PictureSampler() {
  for (Kept& kept : kept_) gst_sample_unref(kept.sample);
}

void PictureSampler::add(GstBuffer* buffer, GstCaps* caps, const FrameResult& result) {
  if (kept_.size() == kMaxPictures) {
    std::vector<Kept> thinned;
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (i % 2 == 0) {
        thinned.push_back(std::move(kept_[i]));
      } else {
        gst_sample_unref(kept_[i].sample);
      }
    }
    kept_ = std::move(thinned);
    step_ *= 2;
  }
  next_ = result.frame / step_ * step_ + step_ / 2;
  if (next_ <= result.frame) next_ += step_;
  GstBuffer* copy = gst_buffer_copy_deep(buffer);
  if (copy == nullptr) return;
  ++copies_;
  kept_.push_back({gst_sample_new(copy, caps, nullptr, nullptr), result});
  gst_buffer_unref(copy);
}

Result<std::vector<ReportPicture>> PictureSampler::encode() {
  std::vector<ReportPicture> pictures;
  for (Kept& kept : kept_) {
    // The encoder keeps the aspect only when both sides are given.
    const int width = std::min(kept.result.width, kPictureWidth) & ~1;
    const int height = std::max(
        2, int(std::int64_t{kept.result.height} * width / std::max(kept.result.width, 1)) & ~1);
    GstCaps* caps = gst_caps_new_simple("image/jpeg", "width", G_TYPE_INT, width, "height",
                                        G_TYPE_INT, height, nullptr);
    GError* error = nullptr;
    GstSample* jpeg = gst_video_convert_sample(kept.sample, caps, kEncodeTimeout, &error);
    gst_caps_unref(caps);
    if (jpeg == nullptr) {
      Error failed(ErrorKind::kUnsupported,
                   str_format("cannot make the report's pictures: {}",
                              error != nullptr ? error->message : "unknown reason"));
      g_clear_error(&error);
      return std::unexpected(std::move(failed));
    }
    GstMapInfo map;
    GstBuffer* bytes = gst_sample_get_buffer(jpeg);
    if (gst_buffer_map(bytes, &map, GST_MAP_READ)) {
      pictures.push_back(
          {std::move(kept.result), std::string(reinterpret_cast<const char*>(map.data), map.size)});
      gst_buffer_unmap(bytes, &map);
    }
    gst_sample_unref(jpeg);
    gst_sample_unref(std::exchange(kept.sample, nullptr));
  }
  std::erase_if(kept_, [](const Kept& kept) { return kept.sample == nullptr; });
  return pictures;
}

}  // namespace penstock
