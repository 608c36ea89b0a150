// SPDX-License-Identifier: Apache-2.0
#include "penstock/records/records.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "penstock/base/json_text.h"

namespace penstock {
namespace {

template <typename T>
void append_member(std::string& out, std::string_view key, T value) {
  out += key;
  append_json_number(out, value);
}

/// "[a,b,c]" of whatever `append` writes for each.
template <typename Range, typename Append>
void append_array(std::string& out, std::string_view key, const Range& items, Append append) {
  out += key;
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) out += ',';
    append(item);
  }
  out += ']';
}

/// Label, class and the value named `key`; the object stays open.
void append_class(std::string& out, const std::string& label, int class_id, std::string_view key,
                  float value) {
  out += R"({"label":)";
  append_json_string(out, label);
  append_member(out, R"(,"class_id":)", class_id);
  append_member(out, key, value);
}

constexpr std::string_view kConfidence = R"(,"confidence":)";

/// A float's own digits where the value is one: 0.1, not 0.10000000149011612.
void append_tensor_value(std::string& out, double value) {
  const bool fits = std::abs(value) <= double{std::numeric_limits<float>::max()};
  const float narrow = fits ? static_cast<float>(value) : 0.0f;
  if (fits && static_cast<double>(narrow) == value) return append_json_number(out, narrow);
  append_json_number(out, value);
}

/// The keys of tasks other than the detectors', where there is something to tell.
void append_others(std::string& out, const PictureFindings& result) {
  if (!result.classes.empty()) {
    append_array(out, R"(,"classes":)", result.classes, [&](const Classification& found) {
      append_class(out, found.label, found.class_id, kConfidence, found.confidence);
      out += '}';
    });
  }
  if (!result.texts.empty()) {
    append_array(out, R"(,"texts":)", result.texts, [&](const TextLine& line) {
      out += R"({"text":)";
      append_json_string(out, line.text);
      append_member(out, kConfidence, line.confidence);
      out += '}';
    });
  }
  if (!result.areas.empty()) {
    append_array(out, R"(,"areas":)", result.areas, [&](const ClassArea& area) {
      append_class(out, area.label, area.class_id, R"(,"fraction":)", area.fraction);
      out += '}';
    });
  }
  const auto number = [&](auto value) { append_json_number(out, value); };
  if (!result.embedding.empty()) append_array(out, R"(,"embedding":)", result.embedding, number);
  if (!result.tensors.empty()) {
    append_array(out, R"(,"tensors":)", result.tensors, [&](const TensorRecord& tensor) {
      out += R"({"name":)";
      append_json_string(out, tensor.name);
      append_array(out, R"(,"shape":)", tensor.shape, number);
      append_array(out, R"(,"values":)", tensor.values,
                   [&](double value) { append_tensor_value(out, value); });
      out += '}';
    });
  }
}

void append_attributes(std::string& out, const std::vector<Attributes>& attributes) {
  if (attributes.empty()) return;
  append_array(out, R"(,"attributes":)", attributes, [&](const Attributes& said) {
    out += R"({"model":)";
    append_json_string(out, said.model);
    if (said.age > 0) append_member(out, R"(,"age":)", said.age);
    append_others(out, said);
    out += '}';
  });
}

void append_object(std::string& out, const Detection& object) {
  append_class(out, object.label, object.class_id, kConfidence, object.confidence);
  append_member(out, R"(,"x":)", object.x);
  append_member(out, R"(,"y":)", object.y);
  append_member(out, R"(,"w":)", object.width);
  append_member(out, R"(,"h":)", object.height);
  if (object.track_id != 0) append_member(out, R"(,"track_id":)", object.track_id);
  if (object.predicted) out += R"(,"predicted":true)";
  if (object.rotated) {
    append_member(out, R"(,"rotated":{"cx":)", object.rotated->center_x);
    append_member(out, R"(,"cy":)", object.rotated->center_y);
    append_member(out, R"(,"w":)", object.rotated->width);
    append_member(out, R"(,"h":)", object.rotated->height);
    append_member(out, R"(,"angle":)", object.rotated->angle);
    out += '}';
  }
  if (!object.keypoints.empty()) {
    append_array(out, R"(,"keypoints":)", object.keypoints, [&](const Keypoint& keypoint) {
      append_member(out, R"({"x":)", keypoint.x);
      append_member(out, R"(,"y":)", keypoint.y);
      append_member(out, kConfidence, keypoint.confidence);
      out += '}';
    });
  }
  if (object.parent >= 0) append_member(out, R"(,"parent":)", object.parent);
  append_attributes(out, object.attributes);
  out += '}';
}

void append_places(std::string& out, const FrameResult& result) {
  if (!result.zones.empty()) {
    append_array(out, R"(,"zones":)", result.zones, [&](const ZoneCount& zone) {
      out += R"({"name":)";
      append_json_string(out, zone.name);
      append_member(out, R"(,"inside":)", zone.inside);
      append_member(out, R"(,"entered":)", zone.entered);
      append_member(out, R"(,"left":)", zone.left);
      out += '}';
    });
  }
  if (!result.lines.empty()) {
    append_array(out, R"(,"lines":)", result.lines, [&](const LineCount& line) {
      out += R"({"name":)";
      append_json_string(out, line.name);
      append_member(out, R"(,"forwards":)", line.forwards);
      append_member(out, R"(,"backwards":)", line.backwards);
      out += '}';
    });
  }
}

}  // namespace

std::string to_json_line(const FrameResult& result) {
  std::string out;
  out.reserve(160 + result.source.size() + 128 * result.objects.size());
  out += R"({"source":)";
  append_json_string(out, result.source);
  append_member(out, R"(,"frame":)", result.frame);
  append_member(out, R"(,"pts_ns":)", result.pts_ns);
  append_member(out, R"(,"width":)", result.width);
  append_member(out, R"(,"height":)", result.height);
  append_array(out, R"(,"objects":)", result.objects,
               [&](const Detection& object) { append_object(out, object); });
  append_others(out, result);
  append_attributes(out, result.attributes);
  append_places(out, result);
  out += '}';
  return out;
}

}  // namespace penstock
