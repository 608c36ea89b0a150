// SPDX-License-Identifier: Apache-2.0
//
// For tests of peninfer as a second stage: frames with coloured squares and the object records that
// a first stage, anybody's, would have written about them; and models that look at the squares.
#pragma once

#include <gst/analytics/analytics.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "gst/penanalysis_meta.h"
#include "gst/testing/container_fixture.h"
#include "penstock/base/str_format.h"
#include "penstock/model/testing/picture_readers.h"
#include "penstock/model/testing/square_finders.h"
#include "penstock/model/testing/test_models.h"

namespace penstock::gst {

/// A square of the picture and, where it has a label, the object record about it.
struct Spot {
  int color = 0;  ///< 0 red, 1 green, 2 blue.
  int x = 0, y = 0, side = 0;
  std::string label{};
  float confidence = 0.5f;
  std::optional<guint64> track{};
  int margin = 0;  ///< Pixels that the object's box reaches beyond the square.
};

inline constexpr int kPictureWidth = 320, kPictureHeight = 240;

class ObjectFixture : public ContainerFixture {
 protected:
  static const std::filesystem::path& folder_of(const model_testing::TestModel& model) {
    static Folders folders;
    const auto [entry, is_new] = folders.paths.try_emplace(
        model.name, std::filesystem::temp_directory_path() /
                        str_format("penstock-objects-{}-{}", getpid(), folders.paths.size()));
    if (is_new) write_model_folder(model, entry->second);
    return entry->second;
  }
  static std::string reader(model_testing::PictureReader reader) {
    auto model = model_testing::make_picture_reader(reader, 32);
    model.name = std::string(to_string(reader));
    return "model=" + folder_of(model).string();
  }
  static std::string color_reader() { return reader(model_testing::PictureReader::kCenterLogits); }
  static std::string finder(model_testing::BoxLayout layout) {
    auto model = model_testing::make_square_finder(layout, 160);
    model.name = std::string(to_string(layout));
    return "model=" + folder_of(model).string();
  }

  std::string picture_caps() const { return caps("NV12", kPictureWidth, kPictureHeight); }

  /// In PLAYING as a second stage with `model`, for pictures.
  void play_stage(const std::string& model, std::vector<std::string> properties = {}) {
    properties.insert(properties.begin(), {model, "roi=objects"});
    play(properties);
    send_caps(CapsPtr(gst_caps_from_string(picture_caps().c_str())));
  }

  BufferPtr picture(const std::vector<Spot>& spots, int frame) {
    constexpr int kLevels[3][3] = {{63, 102, 240}, {173, 42, 26}, {32, 240, 118}};
    constexpr std::size_t kPixels = std::size_t{kPictureWidth} * kPictureHeight;
    std::vector<std::byte> bytes(kPixels * 3 / 2, std::byte{128});
    for (const Spot& spot : spots) {
      const int* level = kLevels[spot.color];
      for (int y = spot.y; y < spot.y + spot.side; ++y) {
        const std::size_t row = static_cast<std::size_t>(y) * kPictureWidth;
        const std::size_t chroma_row = kPixels + static_cast<std::size_t>(y / 2) * kPictureWidth;
        for (int x = spot.x; x < spot.x + spot.side; ++x) {
          bytes[row + static_cast<std::size_t>(x)] = std::byte(level[0]);
          const std::size_t chroma = chroma_row + static_cast<std::size_t>(x & ~1);
          bytes[chroma] = std::byte(level[1]);
          bytes[chroma + 1] = std::byte(level[2]);
        }
      }
    }
    return make_buffer(bytes, pts(frame));
  }

  /// The picture with object records.
  BufferPtr frame_of(const std::vector<Spot>& spots, int frame = 0) {
    BufferPtr buffer = picture(spots, frame);
    GstAnalyticsRelationMeta* meta = gst_buffer_add_analytics_relation_meta(buffer.get());
    for (const Spot& spot : spots) {
      if (spot.label.empty()) continue;
      GstAnalyticsODMtd object;
      EXPECT_TRUE(gst_analytics_relation_meta_add_od_mtd(
          meta, g_quark_from_string(spot.label.c_str()), spot.x - spot.margin, spot.y - spot.margin,
          spot.side + 2 * spot.margin, spot.side + 2 * spot.margin, spot.confidence, &object));
      if (!spot.track) continue;
      GstAnalyticsTrackingMtd track;
      EXPECT_TRUE(gst_analytics_relation_meta_add_tracking_mtd(meta, *spot.track, 0, &track));
      EXPECT_TRUE(gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                           object.id, track.id));
    }
    return buffer;
  }

  static std::vector<GstAnalyticsMtd> records_of(GstBuffer* buffer, GstAnalyticsMtdType type) {
    std::vector<GstAnalyticsMtd> records;
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
    gpointer state = nullptr;
    GstAnalyticsMtd record;
    while (meta != nullptr && gst_analytics_relation_meta_iterate(meta, &state, type, &record)) {
      records.push_back(record);
    }
    return records;
  }
  static std::vector<GstAnalyticsMtd> objects_of(GstBuffer* buffer) {
    return records_of(buffer, gst_analytics_od_mtd_get_mtd_type());
  }
  static std::vector<GstAnalyticsMtd> related(const GstAnalyticsMtd& object,
                                              GstAnalyticsRelTypes relation,
                                              GstAnalyticsMtdType type) {
    std::vector<GstAnalyticsMtd> all;
    gpointer state = nullptr;
    GstAnalyticsMtd one;
    while (gst_analytics_relation_meta_get_direct_related(object.meta, object.id, relation, type,
                                                          &state, &one)) {
      all.push_back(one);
    }
    return all;
  }
  /// Of each object the label of its surest class, "" for none; with "~N" where it is N frames old.
  static std::vector<std::string> colors_of(GstBuffer* buffer) {
    std::vector<std::string> colors;
    const Analysis* analysis = read_analysis(buffer);
    for (std::size_t i = 0; analysis != nullptr && i < analysis->result.objects.size(); ++i) {
      const auto& said = analysis->result.objects[i].attributes;
      std::string& color = colors.emplace_back();
      if (said.empty() || said[0].classes.empty()) continue;
      color = said[0].classes[0].label;
      if (said[0].age > 0) color += str_format("~{}", said[0].age);
    }
    return colors;
  }

 private:
  struct Folders {
    std::map<std::string, std::filesystem::path> paths;
    ~Folders() {
      std::error_code ignored;
      for (const auto& [name, path] : paths) std::filesystem::remove_all(path, ignored);
    }
  };
};

}  // namespace penstock::gst
