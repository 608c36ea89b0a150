// SPDX-License-Identifier: Apache-2.0
//
// OpenVINO's model_info, as its Model API and DL Streamer read it.
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/model_info.h"

namespace penstock {
namespace {

using simdjson::dom::element;

/// A key with its values: one, or a list's.
struct Entry {
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
};

std::unexpected<Error> corrupt_info(const std::string& what) {
  return fail(ErrorKind::kCorrupt, what);
}

struct ModelType {
  std::string_view name;  ///< Lower case, without '_' and '-'.
  std::string_view family;
};
constexpr std::array kModelTypes{
    ModelType{"yolov5", "yolov5"},
    ModelType{"yolov7", "yolov5"},
    ModelType{"yolov8", "yolov8"},
    ModelType{"yolov9", "yolov8"},
    ModelType{"yolov11", "yolov8"},
    ModelType{"yolo11", "yolov8"},
    ModelType{"yolov12", "yolov8"},
    ModelType{"yolov10", "yolo-end-to-end"},
    ModelType{"yolov26", "yolo-end-to-end"},
    ModelType{"yolov8seg", "yolov8-seg"},
    ModelType{"yolov11seg", "yolov8-seg"},
    ModelType{"yolov26seg", "yolo-end-to-end-seg"},
    ModelType{"yolov8pose", "yolov8-pose"},
    ModelType{"yolov11pose", "yolov8-pose"},
    ModelType{"yolov26pose", "yolo-end-to-end-pose"},
    ModelType{"yolov8obb", "yolov8-obb"},
    ModelType{"yolov11obb", "yolov8-obb"},
    ModelType{"yolov26obb", "yolo-end-to-end-obb"},
    ModelType{"yolox", "yolox"},
    ModelType{"rtdetr", "rtdetr"},
    ModelType{"ssd", "ssd"},
    ModelType{"detectionoutput", "ssd"},
    ModelType{"nanodet", "nanodet"},
    ModelType{"label", "classification"},
    ModelType{"classification", "classification"},
    ModelType{"semanticsegmentation", "semantic"},
    ModelType{"segmentation", "semantic"},
};

std::string folded(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c == '_' || c == '-') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

std::vector<std::string> words(const std::vector<std::string>& values) {
  std::vector<std::string> found;
  for (const std::string& value : values) {
    std::size_t at = 0;
    while ((at = value.find_first_not_of(" ,\t\n", at)) != std::string::npos) {
      const std::size_t end = std::min(value.find_first_of(" ,\t\n", at), value.size());
      found.push_back(value.substr(at, end - at));
      at = end;
    }
  }
  return found;
}

Result<float> number(const Entry& entry, float least, float most) {
  const auto value =
      entry.values.size() == 1 ? float_of_text(entry.values[0]) : std::optional<float>();
  if (!value || *value < least || *value > most) {
    return corrupt_info(
        str_format("'model_info.{}' must be one number in {}..{}", entry.key, least, most));
  }
  return *value;
}

Result<std::array<float, 3>> three(const Entry& entry) {
  std::vector<float> numbers;
  for (const std::string& word : words(entry.values)) {
    const auto value = float_of_text(word);
    if (!value)
      return corrupt_info(str_format("'model_info.{}': '{}' is no number", entry.key, word));
    numbers.push_back(*value);
  }
  if (numbers.size() == 1) return std::array{numbers[0], numbers[0], numbers[0]};
  if (numbers.size() == 3) return std::array{numbers[0], numbers[1], numbers[2]};
  return corrupt_info(str_format("'model_info.{}' must have one number or three, not {}", entry.key,
                                 numbers.size()));
}

Result<bool> boolean(const Entry& entry) {
  const std::string text = entry.values.size() == 1 ? folded(entry.values[0]) : "";
  if (text == "true" || text == "yes") return true;
  if (text == "false" || text == "no") return false;
  return corrupt_info(str_format("'model_info.{}' must be true or false", entry.key));
}

Result<void> take_fit(const Entry& entry, ModelInfo& info) {
  const std::string text = entry.values.size() == 1 ? entry.values[0] : "";
  if (text == "standard") {
    info.fit = Fit::kStretch;
  } else if (text == "fit_to_window") {
    info.fit = Fit::kLetterboxTopLeft;
  } else if (text == "fit_to_window_letterbox") {
    info.fit = Fit::kLetterboxCenter;
  } else {
    // "crop" too: it is no way to fit a frame here, and the user has to choose one.
    info.unused.push_back(str_format("resize_type '{}'", text));
  }
  return {};
}

/// A list keeps its texts; one text is names between spaces.
Result<void> take_labels(const Entry& entry, ModelInfo& info) {
  info.labels = entry.is_list ? entry.values : words(entry.values);
  if (info.labels.empty() || info.labels.size() > kMaxManifestLabels) {
    return corrupt_info(
        str_format("'model_info.labels' must name 1..{} classes", kMaxManifestLabels));
  }
  return {};
}

template <typename T>
Result<void> take(Result<T> value, std::optional<T>& place) {
  if (!value) return std::unexpected(std::move(value).error());
  place = *value;
  return {};
}

Result<void> take_entry(const Entry& entry, ModelInfo& info) {
  const std::string& key = entry.key;
  if (key == "model_type") {
    info.model_kind = entry.values.size() == 1 ? entry.values[0] : "";
    const auto type = std::ranges::find(kModelTypes, folded(info.model_kind), &ModelType::name);
    if (type != kModelTypes.end()) {
      info.family = type->family;
    } else {
      info.unused.push_back(str_format("model_type '{}'", info.model_kind));
    }
    return {};
  }
  if (key == "labels") return take_labels(entry, info);
  if (key == "confidence_threshold") return take(number(entry, 0, 1), info.threshold);
  if (key == "iou_threshold") return take(number(entry, 0, 1), info.iou_threshold);
  if (key == "pad_value") return take(number(entry, 0, 255), info.pad);
  if (key == "resize_type") return take_fit(entry, info);
  if (key == "mean_values") return take(three(entry), info.mean);
  if (key == "scale_values") {
    PENSTOCK_TRY(take(three(entry), info.std));
    for (const float value : *info.std) {
      if (!(value > 0)) return corrupt_info("'model_info.scale_values' must be above 0");
    }
    return {};
  }
  if (key == "reverse_input_channels") {
    // These tools start from BGR pictures.
    const auto reversed = boolean(entry);
    if (!reversed) return std::unexpected(reversed.error());
    info.order = *reversed ? ChannelOrder::kRgb : ChannelOrder::kBgr;
    return {};
  }
  info.unused.push_back(key);
  return {};
}

Result<ModelInfo> info_of(const std::vector<Entry>& entries) {
  ModelInfo info;
  for (const Entry& entry : entries) PENSTOCK_TRY(take_entry(entry, info));
  return info;
}

/// The text of a scalar; nothing for an object, a list or null.
std::optional<std::string> scalar(element value) {
  std::string_view text;
  bool truth = false;
  double real = 0;
  if (!value.get_string().get(text)) return std::string(text);
  if (!value.get_bool().get(truth)) return truth ? "true" : "false";
  if (!value.get_double().get(real)) return str_format("{}", real);
  return std::nullopt;
}

Result<Entry> entry_of(std::string_view key, element value) {
  simdjson::dom::object wrapped;
  if (!value.get_object().get(wrapped) && wrapped["value"].get(value)) {
    return corrupt_info(str_format("'model_info.{}' is an object without 'value'", key));
  }
  Entry entry{.key = std::string(key), .values = {}};
  simdjson::dom::array list;
  if (value.get_array().get(list)) {
    auto one = scalar(value);
    if (!one) return corrupt_info(str_format("'model_info.{}' is no text, number or list", key));
    entry.values.push_back(*std::move(one));
    return entry;
  }
  entry.is_list = true;
  for (const element item : list) {
    auto one = scalar(item);
    if (!one) return corrupt_info(str_format("'model_info.{}' is a list of more than texts", key));
    entry.values.push_back(*std::move(one));
  }
  return entry;
}

}  // namespace

std::optional<float> float_of_text(std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

Result<ModelInfo> parse_openvino_info(std::string_view json) {
  if (json.size() > kMaxModelInfoBytes) {
    return corrupt_info(str_format("it has more than {} bytes", kMaxModelInfoBytes));
  }
  simdjson::dom::parser parser(kMaxModelInfoBytes);
  if (const auto error = parser.allocate(kMaxModelInfoBytes, kMaxManifestNesting)) {
    return fail(ErrorKind::kExhausted, simdjson::error_message(error));
  }
  element root;
  if (const auto error = parser.parse(simdjson::padded_string(json)).get(root)) {
    return corrupt_info(str_format("it is no JSON: {}", simdjson::error_message(error)));
  }
  simdjson::dom::object object;
  if (root["model_info"].get_object().get(object) &&
      root["rt_info"]["model_info"].get_object().get(object)) {
    return fail(ErrorKind::kNotFound, "it has no object 'model_info'");
  }
  std::vector<Entry> entries;
  for (const auto [key, value] : object) {
    if (std::ranges::find(entries, key, &Entry::key) != entries.end()) {
      return corrupt_info(str_format("'model_info.{}' is given twice", key));
    }
    auto entry = entry_of(key, value);
    if (!entry) return std::unexpected(std::move(entry).error());
    entries.push_back(*std::move(entry));
    if (entries.size() > kMaxManifestTensors) return corrupt_info("'model_info' has too many keys");
  }
  return info_of(entries);
}

Result<ModelInfo> parse_openvino_metadata(
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  constexpr std::string_view kPrefix = "model_info";
  std::vector<Entry> entries;
  for (const auto& [key, value] : metadata) {
    if (key == kPrefix) return parse_openvino_info(str_format("{{\"model_info\":{}}}", value));
    if (key.size() <= kPrefix.size() + 1 || !key.starts_with(kPrefix) ||
        std::string_view(" ./").find(key[kPrefix.size()]) == std::string_view::npos) {
      continue;
    }
    entries.push_back({.key = key.substr(kPrefix.size() + 1), .values = {value}});
  }
  if (entries.empty()) return fail(ErrorKind::kNotFound, "no entry 'model_info'");
  return info_of(entries);
}

}  // namespace penstock
