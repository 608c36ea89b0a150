// SPDX-License-Identifier: Apache-2.0
#include "gst/keypoints_mtd.h"

#include <cstdint>
#include <cstring>

namespace penstock::gst {
namespace {

struct Header {
  std::uint32_t count;
  std::uint32_t width, height;
};
static_assert(sizeof(Header) == 12);
static_assert(sizeof(Keypoint) == 12);

// Without hooks a record is copied byte by byte wherever the meta goes.
const GstAnalyticsMtdImpl keypoints_impl{"penstock-keypoints", nullptr, nullptr, {}};

}  // namespace

GstAnalyticsMtdType keypoints_mtd_type() {
  return reinterpret_cast<GstAnalyticsMtdType>(&keypoints_impl);
}

std::optional<ObjectKeypoints> read_keypoints(const GstAnalyticsMtd& mtd) {
  if (gst_analytics_mtd_get_mtd_type(&mtd) != keypoints_mtd_type()) return std::nullopt;
  const auto* bytes =
      static_cast<const std::byte*>(gst_analytics_relation_meta_get_mtd_data(mtd.meta, mtd.id));
  if (bytes == nullptr) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes, sizeof header);
  ObjectKeypoints read{.frame_width = static_cast<int>(header.width),
                       .frame_height = static_cast<int>(header.height)};
  if (header.count == 0) return read;
  read.keypoints.resize(header.count);
  std::memcpy(static_cast<void*>(read.keypoints.data()), bytes + sizeof header,
              header.count * sizeof(Keypoint));
  return read;
}

bool add_keypoints(GstAnalyticsRelationMeta* meta, const ObjectKeypoints& keypoints,
                   GstAnalyticsMtd& added) {
  const gsize size = keypoints.keypoints.size() * sizeof(Keypoint);
  auto* bytes = static_cast<std::byte*>(
      gst_analytics_relation_meta_add_mtd(meta, &keypoints_impl, sizeof(Header) + size, &added));
  if (bytes == nullptr) return false;
  const Header header{static_cast<std::uint32_t>(keypoints.keypoints.size()),
                      static_cast<std::uint32_t>(keypoints.frame_width),
                      static_cast<std::uint32_t>(keypoints.frame_height)};
  std::memcpy(bytes, &header, sizeof header);
  if (size > 0) std::memcpy(bytes + sizeof header, keypoints.keypoints.data(), size);
  return true;
}

}  // namespace penstock::gst
