// SPDX-License-Identifier: Apache-2.0
//
// What a family's models usually take, and the two notations in which Ultralytics writes metadata.
#include <algorithm>
#include <array>
#include <charconv>

#include "penstock/base/str_format.h"
#include "penstock/model/family_guess.h"

namespace penstock {

std::optional<PreprocessSpec> family_preprocess(std::string_view family) {
  PreprocessSpec spec;
  spec.scale = 1.0f / 255.0f;
  spec.fit = Fit::kLetterboxCenter;
  if (family == "yolox") {
    spec.order = ChannelOrder::kBgr;
    spec.scale = 1.0f;
    spec.fit = Fit::kLetterboxTopLeft;
    return spec;
  }
  if (family == "rtdetr") {
    spec.fit = Fit::kStretch;
    return spec;
  }
  if (family == "movenet") {
    spec.scale = 1.0f;
    spec.pad_level = 0.0f;
    return spec;
  }
  if (family == "blazeface") {
    spec.scale = 1.0f / 127.5f;
    spec.mean = {1.0f, 1.0f, 1.0f};
    spec.pad_level = 0.0f;
    return spec;
  }
  if (family.starts_with("yolo")) return spec;
  return std::nullopt;
}

std::vector<std::string> usual_keypoints(std::size_t count) {
  constexpr std::array<std::string_view, 17> kCoco{
      "nose",           "left eye",   "right eye",   "left ear",   "right ear",   "left shoulder",
      "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip",
      "right hip",      "left knee",  "right knee",  "left ankle", "right ankle"};
  std::vector<std::string> names(count);
  for (std::size_t i = 0; i < count; ++i) {
    names[i] = count == kCoco.size() ? std::string(kCoco[i]) : str_format("keypoint {}", i);
  }
  return names;
}

std::vector<std::string> face_keypoints() {
  return {"right eye", "left eye", "nose", "mouth", "right ear", "left ear"};
}

std::vector<std::string> labels_of_dictionary(std::string_view text) {
  constexpr std::size_t kMostLabels = 65536;
  std::vector<std::string> labels;
  const auto skip = [&](std::string_view what) {
    text.remove_prefix(std::min(text.find_first_not_of(what), text.size()));
  };
  skip(" ");
  if (!text.starts_with('{')) return {};
  text.remove_prefix(1);
  while (labels.size() < kMostLabels) {
    skip(", \n");
    if (text.starts_with('}')) return labels;
    // Keys may be quoted, as JSON has them.
    const bool quoted_key = text.starts_with('"') || text.starts_with('\'');
    if (quoted_key) text.remove_prefix(1);
    std::size_t key = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    if (error != std::errc() || key != labels.size()) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (quoted_key) text.remove_prefix(std::min<std::size_t>(1, text.size()));
    skip(": ");
    if (!text.starts_with('"') && !text.starts_with('\'')) return {};
    const char quote = text[0];
    text.remove_prefix(1);
    std::string label;
    std::size_t i = 0;
    for (; i < text.size() && text[i] != quote; ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      label += text[i];
    }
    if (i == text.size() || label.find('\0') != std::string::npos) return {};
    text.remove_prefix(i + 1);
    labels.push_back(std::move(label));
  }
  return {};
}

std::vector<int> integers_in(std::string_view text) {
  std::vector<int> numbers;
  while (numbers.size() < 8) {
    const auto digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) return numbers;
    text.remove_prefix(digit);
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number > 65536) return {};
    numbers.push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return numbers;
}

}  // namespace penstock
