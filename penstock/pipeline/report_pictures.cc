// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/report_pictures.h"

#include <glib.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/report_page.h"

namespace penstock {
namespace {

std::string base64(const std::string& bytes) {
  gchar* text = g_base64_encode(reinterpret_cast<const guchar*>(bytes.data()), bytes.size());
  std::string out(text);
  g_free(text);
  return out;
}

struct LabelPlace {
  double x, y, width;  ///< Left end, base line and an estimate, which no font is asked for.
};

/// Puts labels above, below or within their boxes: inside the picture, and where no other is as far
/// as one of these is free.
class LabelPlaces {
 public:
  LabelPlaces(double width, double height, double font)
      : width_(width), height_(height), font_(font) {}

  LabelPlace place(const Detection& object, const std::string& text) {
    const auto letters = std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
    const double width = 0.58 * font_ * double(letters);
    const double x = std::max(0.0, std::min<double>(object.x, width_ - width));
    const double top = object.y, bottom = top + double(object.height);
    const auto at = [&](double y) {
      return LabelPlace{x, std::clamp(y, font_, std::max(font_, height_ - 0.25 * font_)), width};
    };
    LabelPlace best = at(top - 0.25 * font_);
    for (const double y : {top - 0.25 * font_, bottom + font_, top + font_, bottom - 0.25 * font_,
                           top - 1.35 * font_}) {
      if (is_free(at(y))) {
        best = at(y);
        break;
      }
    }
    placed_.push_back(best);
    return best;
  }

 private:
  bool is_free(const LabelPlace& place) const {
    return std::ranges::none_of(placed_, [&](const LabelPlace& other) {
      return std::abs(place.y - other.y) < font_ && place.x < other.x + other.width &&
             other.x < place.x + place.width;
    });
  }

  double width_, height_, font_;
  std::vector<LabelPlace> placed_;  // one an object
};

void append_box(std::string& out, const Detection& object, double font, LabelPlaces& places) {
  if (object.rotated) {
    const RotatedBox& box = *object.rotated;
    str_append(out,
               "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{:.1f}\" transform=\"rotate({:.2f} {:.1f} {:.1f})\"/>",
               box.center_x - box.width / 2, box.center_y - box.height / 2, box.width, box.height,
               box.angle * 180 / std::numbers::pi_v<float>, box.center_x, box.center_y);
  } else {
    str_append(out,
               "<rect class=\"box\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
               "height=\"{:.1f}\"/>",
               object.x, object.y, object.width, object.height);
  }
  // The surer, the less transparent; one that the model did not see is not there.
  for (const Keypoint& keypoint : object.keypoints) {
    if (!(keypoint.confidence > 0)) continue;
    str_append(out,
               "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
               "fill-opacity=\"{:.2f}\"/>",
               keypoint.x, keypoint.y, font * 0.2, std::min(keypoint.confidence, 1.0f));
  }
  const std::string id = object.track_id > 0 ? str_format(" #{}", object.track_id) : std::string();
  const std::string text = str_format("{}{} {:.2f}", object.label, id, object.confidence);
  const LabelPlace place = places.place(object, text);
  str_append(out,
             "<text class=\"boxlabel\" x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{:.1f}\">{}</text>",
             place.x, place.y, font, html_escape(text));
}

/// What was found, for below the picture; empty for numbers alone.
std::string caption_of(const FrameResult& result, Subject subject) {
  constexpr std::size_t kShown = 3;
  std::string out;
  switch (subject) {
    case Subject::kObjects:
      return str_format(", {} objects",
                        std::ranges::count(result.objects, false, &Detection::predicted));
    case Subject::kClasses:
      for (std::size_t i = 0; i < std::min(result.classes.size(), kShown); ++i) {
        out += str_format(", {} {:.2f}", html_escape(result.classes[i].label),
                          result.classes[i].confidence);
      }
      return result.classes.empty() ? ", no class" : out;
    case Subject::kAreas:
      for (std::size_t i = 0; i < std::min(result.areas.size(), kShown); ++i) {
        out += str_format(", {} {:.1f} %", html_escape(result.areas[i].label),
                          100 * result.areas[i].fraction);
      }
      return out;
    case Subject::kTexts:
      return result.texts.empty() ? ", no text" : ", " + html_escape(result.texts.front().text);
    case Subject::kNumbers:
      break;
  }
  return out;
}

}  // namespace

std::string picture_figure(const ReportPicture& picture, Subject subject) {
  const FrameResult& result = picture.result;
  std::string out;
  const double font = result.width / 40.0;
  str_append(out,
             "<figure><svg viewBox=\"0 0 {0} {1}\"><image width=\"{0}\" height=\"{1}\" "
             "preserveAspectRatio=\"none\" href=\"data:image/jpeg;base64,{2}\"/>",
             result.width, result.height, base64(picture.jpeg));
  LabelPlaces places(result.width, result.height, font);
  for (const Detection& object : result.objects) append_box(out, object, font, places);
  str_append(out, "</svg><figcaption>frame {}{}</figcaption></figure>", result.frame,
             caption_of(result, subject));
  return out;
}

}  // namespace penstock
