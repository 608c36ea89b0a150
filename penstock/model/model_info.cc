// SPDX-License-Identifier: Apache-2.0
//
// GStreamer's key file, and the search for what is said of a model.
#include "penstock/model/model_info.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "penstock/base/small_file.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"

namespace penstock {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

struct TensorId {
  std::string_view id;
  std::string_view family;
};
// Of the tensor-id registry that GStreamer's decoders go by.
constexpr std::array kTensorIds{
    TensorId{"yolo-v8-out", "yolov8"},
    TensorId{"yolo-v8-segmentation-out", "yolov8-seg"},
    TensorId{"ssd-mobilenet-v1-variant-1-out", "ssd"},
};

class KeyFileReader {
 public:
  explicit KeyFileReader(std::string_view text) : text_(text) {}

  Result<ModelInfo> run() {
    while (!text_.empty() && !error_) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      ++line_;
      line(trimmed(text_.substr(0, end)));
      text_.remove_prefix(std::min(end + 1, text_.size()));
    }
    if (!error_ && !has_version_) refuse("it has no 'version' in a group [modelinfo]");
    if (error_) return std::unexpected(*error_);
    return std::move(info_);
  }

 private:
  void refuse(const std::string& why, ErrorKind kind = ErrorKind::kCorrupt) {
    if (!error_) error_.emplace(kind, why);
  }
  void refuse_line(const std::string& why) { refuse(str_format("line {}: {}", line_, why)); }

  void line(std::string_view text) {
    if (text.empty() || text.starts_with('#')) return;
    if (text.find('\0') != std::string_view::npos) return refuse_line("it has a NUL character");
    if (text.starts_with('[')) return group(text);
    const std::size_t equals = text.find('=');
    const std::string_view key = trimmed(text.substr(0, equals));
    if (equals == std::string_view::npos || key.empty()) {
      return refuse_line("it is no [group], key=value or # comment");
    }
    if (group_.empty()) return refuse_line(str_format("'{}' is in no group", key));
    if (!keys_.emplace(key).second) {
      return refuse_line(str_format("'{}' is given twice in [{}]", key, group_));
    }
    const std::string_view value = trimmed(text.substr(equals + 1));
    group_ == "modelinfo" ? header(key, value) : tensor(key, value);
  }

  void group(std::string_view text) {
    const std::string_view name = text.substr(1, text.size() - 2);
    if (!text.ends_with(']') || name.empty()) return refuse_line("a group is written [name]");
    if (!groups_.emplace(name).second) {
      return refuse_line(str_format("group [{}] is given twice", name));
    }
    if (groups_.size() > kMaxManifestTensors) return refuse_line("there are too many groups");
    group_ = name;
    keys_.clear();
    if (name != "modelinfo") info_.tensors.push_back({.name = std::string(name)});
  }

  void header(std::string_view key, std::string_view value) {
    if (key == "version") {
      has_version_ = true;
      if (!value.starts_with("1.")) {
        refuse(str_format("line {}: version '{}' of the format is not known, 1.0 is", line_, value),
               ErrorKind::kUnsupported);
      }
    } else if (key == "group-id") {
      info_.model_kind = value;
      take_id(value);
    } else {
      info_.unused.push_back(str_format("[modelinfo] {}", key));
    }
  }

  void take_id(std::string_view id) {
    const auto known = std::ranges::find(kTensorIds, id, &TensorId::id);
    if (known != kTensorIds.end()) info_.family = known->family;
  }

  void tensor(std::string_view key, std::string_view value) {
    ModelInfoTensor& tensor = info_.tensors.back();
    if (key == "id") {
      tensor.id = value;
      if (info_.family.empty()) take_id(value);
    } else if (key == "dir") {
      if (value != "input" && value != "output") return refuse_line("dir is input or output");
      tensor.is_input = value == "input";
    } else if (key == "type") {
      take_type(value, tensor);
    } else if (key == "dims") {
      take_dims(value, tensor);
    } else if (key == "dims-order") {
      if (value != "row-major" && value != "col-major") {
        return refuse_line("dims-order is row-major or col-major");
      }
      tensor.dims_order = value;
    } else if (key == "ranges") {
      take_ranges(value, tensor);
    } else {
      info_.unused.push_back(str_format("[{}] {}", tensor.name, key));
    }
  }

  void take_type(std::string_view value, ModelInfoTensor& tensor) {
    for (const DataType type :
         {DataType::kFloat32, DataType::kFloat16, DataType::kFloat64, DataType::kUint8,
          DataType::kInt8, DataType::kInt32, DataType::kInt64, DataType::kBool}) {
      if (to_string(type) == value) tensor.type = type;
    }
    if (!tensor.type) info_.unused.push_back(str_format("[{}] type {}", tensor.name, value));
  }

  void take_dims(std::string_view value, ModelInfoTensor& tensor) {
    for (const std::string_view part : split(value, ',')) {
      std::int64_t size = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
      if (error != std::errc() || end != part.data() + part.size()) {
        return refuse_line(str_format("'{}' is no size", part));
      }
      tensor.dims.push_back(std::max<std::int64_t>(size, -1));
      if (tensor.dims.size() > kMaxManifestRank) return refuse_line("there are too many sizes");
    }
  }

  void take_ranges(std::string_view value, ModelInfoTensor& tensor) {
    for (const std::string_view part : split(value, ';')) {
      const auto ends = split(part, ',');
      const auto least = ends.size() == 2 ? float_of_text(ends[0]) : std::nullopt;
      const auto most = ends.size() == 2 ? float_of_text(ends[1]) : std::nullopt;
      if (!least || !most || !(*least < *most)) {
        return refuse_line(str_format("'{}' is no range 'least,most'", part));
      }
      tensor.ranges.push_back({*least, *most});
      if (tensor.ranges.size() > 3) break;
    }
    if (tensor.ranges.size() != 1 && tensor.ranges.size() != 3) {
      refuse_line("there is one range, or three for a picture's channels");
    }
  }

  std::string_view text_;
  std::string group_;
  std::set<std::string, std::less<>> groups_, keys_;
  std::size_t line_ = 0;
  bool has_version_ = false;
  std::optional<Error> error_;
  ModelInfo info_;
};

/// Adds what the first of `files` that exists says.
template <typename Parse>
Result<void> add_first(const std::array<std::filesystem::path, 2>& files, Parse parse,
                       std::vector<ModelInfo>& found) {
  for (const std::filesystem::path& file : files) {
    const auto text = read_small_file(file, kMaxModelInfoBytes);
    if (!text && text.error().kind() == ErrorKind::kNotFound) continue;
    Result<ModelInfo> info = text ? parse(*text) : std::unexpected(text.error());
    if (!info && text && info.error().kind() == ErrorKind::kNotFound) continue;
    if (!info) {
      return std::unexpected(
          std::move(info).error().context(str_format("'{}' beside the model", file.string())));
    }
    info->source = file.filename().string();
    found.push_back(*std::move(info));
    return {};
  }
  return {};
}

}  // namespace

Result<ModelInfo> parse_gstreamer_info(std::string_view text) {
  if (text.size() > kMaxModelInfoBytes) {
    return fail(ErrorKind::kCorrupt, str_format("it has more than {} bytes", kMaxModelInfoBytes));
  }
  return KeyFileReader(text).run();
}

Result<std::vector<ModelInfo>> find_model_info(
    const std::filesystem::path& onnx,
    const std::vector<std::pair<std::string, std::string>>& metadata) {
  const auto with = [&](const char* extension) {
    std::filesystem::path longer = onnx, other = onnx;
    longer += extension;
    other.replace_extension(extension);
    return std::array{longer, other};
  };
  std::vector<ModelInfo> found;
  PENSTOCK_TRY(add_first(with(".modelinfo"), parse_gstreamer_info, found));
  PENSTOCK_TRY(add_first(with(".json"), parse_openvino_info, found));
  auto embedded = parse_openvino_metadata(metadata);
  if (!embedded && embedded.error().kind() != ErrorKind::kNotFound) {
    return std::unexpected(std::move(embedded).error().context("the model's metadata"));
  }
  if (embedded) {
    embedded->source = "metadata 'model_info'";
    found.push_back(*std::move(embedded));
  }
  return found;
}

}  // namespace penstock
