// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/family_guess.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

// More boxes than an end-to-end head or a transformer answers; grids have more rows.
constexpr std::int64_t kMostQueries = 1500;

/// The fixed size of a dimension, -1 when it is open.
std::int64_t side(const TensorSpec& spec, std::size_t i) {
  return i < spec.dims.size() && spec.dims[i].is_fixed() ? spec.dims[i].minimum : -1;
}

std::string shape_of(const TensorSpec& spec) {
  std::string text;
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    text += i == 0 ? "" : ",";
    text += side(spec, i) < 0 ? "?" : std::to_string(side(spec, i));
  }
  return str_format("'{}' [{}]", spec.name, text);
}

std::size_t rank(const TensorSpec& spec) { return spec.dims.size(); }

std::int64_t grid_cells(const GuessInput& input) {
  std::int64_t cells = 0;
  for (const int stride : {8, 16, 32}) {
    cells += std::int64_t{input.width / stride} * (input.height / stride);
  }
  return cells;
}

using Guess = std::optional<FamilyGuess>;

Guess guess_nanodet(const GuessInput& input) {
  if (input.outputs.size() != 6) return std::nullopt;
  std::int64_t classes = 0;
  int distributions = 0;
  for (const TensorSpec& output : input.outputs) {
    if (rank(output) != 3) return std::nullopt;
    if (side(output, 2) == 44) {
      ++distributions;
    } else {
      classes = side(output, 2);
    }
  }
  if (distributions != 3 || classes < 1) return std::nullopt;
  return FamilyGuess{"nanodet", std::size_t(classes),
                     "six outputs, three of them box distributions of 44 values"};
}

Guess guess_ssd(const GuessInput& input) {
  const auto& outputs = input.outputs;
  if (outputs.size() == 1 && rank(outputs[0]) == 4 && side(outputs[0], 3) == 7) {
    return FamilyGuess{
        "ssd", 0, str_format("output {} is a list of seven values a box", shape_of(outputs[0]))};
  }
  if (outputs.size() != 4) return std::nullopt;
  const auto boxes = std::ranges::count_if(
      outputs, [](const TensorSpec& o) { return rank(o) == 3 && side(o, 2) == 4; });
  const auto lists = std::ranges::count_if(
      outputs, [](const TensorSpec& o) { return rank(o) == 2 || rank(o) == 1; });
  if (boxes != 1 || lists != 3) return std::nullopt;
  return FamilyGuess{"ssd", 0, "four outputs: boxes, and three lists"};
}

Guess guess_pair(const GuessInput& input) {
  if (input.outputs.size() != 2) return std::nullopt;
  for (const std::size_t boxes : {std::size_t{1}, std::size_t{0}}) {
    const TensorSpec& logits = input.outputs[1 - boxes];
    if (rank(logits) == 3 && rank(input.outputs[boxes]) == 3 &&
        side(input.outputs[boxes], 2) == 4 && side(logits, 2) > 0) {
      return FamilyGuess{
          "rtdetr", std::size_t(side(logits, 2)),
          str_format("logits {} and boxes {}", shape_of(logits), shape_of(input.outputs[boxes]))};
    }
  }
  return std::nullopt;
}

Guess guess_single(const GuessInput& input) {
  if (input.outputs.size() != 1 || rank(input.outputs[0]) != 3) return std::nullopt;
  const TensorSpec& output = input.outputs[0];
  const std::int64_t second = side(output, 1), third = side(output, 2);
  const auto labels = static_cast<std::int64_t>(input.labels);
  const auto made = [&](const char* family, std::int64_t classes, const std::string& why) {
    return FamilyGuess{family, std::size_t(std::max<std::int64_t>(classes, 0)),
                       str_format("output {} {}", shape_of(output), why)};
  };
  const std::int64_t cells = grid_cells(input);
  if (third == 6 && second > 0 && second <= kMostQueries && labels != 1 && labels != 2) {
    return made("yolo-end-to-end", 0, "has corners, score and class of each box");
  }
  if (second > 4 &&
      (third == cells || (third < 0 && labels > 0 && second == 4 + labels) || third > 2 * second)) {
    return made("yolov8", second - 4, "has a column a cell: four box values and the classes");
  }
  if (third > 5 && second == 3 * cells) {
    return made("yolov5", third - 5, "has three rows a cell: box, objectness and the classes");
  }
  if (third > 5 && second == cells) {
    return made("yolox", third - 5, "has a row a cell: box, objectness and the classes");
  }
  if (third > 4 && second > 0 && second <= kMostQueries) {
    return made("rtdetr", third - 4, "has a row a query: box and the classes");
  }
  return std::nullopt;
}

}  // namespace

Result<FamilyGuess> guess_family(const GuessInput& input) {
  for (const auto& guess :
       {guess_nanodet(input), guess_ssd(input), guess_pair(input), guess_single(input)}) {
    if (guess) return *guess;
  }
  std::string shapes;
  for (const TensorSpec& output : input.outputs) {
    shapes += (shapes.empty() ? "" : ", ") + shape_of(output);
  }
  return fail(ErrorKind::kUnsupported, str_format("no known family has outputs like {}", shapes));
}

std::optional<PreprocessSpec> family_preprocess(std::string_view family) {
  PreprocessSpec spec;
  spec.scale = 1.0f / 255.0f;
  spec.fit = Fit::kLetterboxCenter;
  if (family == "yolov5" || family == "yolov8" || family == "yolo-end-to-end") return spec;
  if (family == "rtdetr") {
    spec.fit = Fit::kStretch;
    return spec;
  }
  if (family == "yolox") {
    spec.order = ChannelOrder::kBgr;
    spec.scale = 1.0f;
    spec.fit = Fit::kLetterboxTopLeft;
    return spec;
  }
  return std::nullopt;
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
