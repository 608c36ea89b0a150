// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/whole_picture.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "semantic";

/// How an output holds its map.
struct MapLayout {
  std::size_t channels = 0;  ///< Of scores; 0: class numbers.
  bool channels_last = false;
  std::size_t classes = 0;  ///< Of the map, 1..256.
  std::size_t height = 0, width = 0;
};

struct MapModel {
  std::size_t labels = 0;
  TensorLayout layout = TensorLayout::kAny;
  bool logits = false;
  float threshold = 0;
};

Result<MapLayout> sized(MapLayout map, const Shape& shape, std::int64_t height,
                        std::int64_t width) {
  if (height < 1 || width < 1) return misfit(kFamily, std::span(&shape, 1), "the map is empty");
  if (height > kMaxMapPixels / width) {
    return fail(ErrorKind::kExhausted,
                str_format("a map of {} x {} has more than the {} pixels that family '{}' takes",
                           width, height, kMaxMapPixels, kFamily));
  }
  map.height = static_cast<std::size_t>(height);
  map.width = static_cast<std::size_t>(width);
  return map;
}

Result<MapLayout> lay_out_numbers(const MapModel& model, const Shape& shape) {
  const MapLayout map{.classes = model.labels == 0 ? kMaxMapClasses : model.labels};
  if (map.classes > kMaxMapClasses) {
    return misfit(kFamily, std::span(&shape, 1),
                  str_format("{} labels are more than {}", map.classes, kMaxMapClasses));
  }
  if (shape.size() == 3) return sized(map, shape, shape[1], shape[2]);
  if (shape.size() == 4 && shape[1] == 1) return sized(map, shape, shape[2], shape[3]);
  if (shape.size() == 4 && shape[3] == 1) return sized(map, shape, shape[1], shape[2]);
  return misfit(kFamily, std::span(&shape, 1),
                "class numbers need [N,h,w], [N,1,h,w] or [N,h,w,1]");
}

/// Whether an axis of that size can be the classes'. One channel has two classes.
bool may_be_classes(std::int64_t side, std::size_t labels) {
  if (side == 1) return labels == 0 || labels == 2;
  return labels != 0 && std::cmp_equal(side, labels);
}

Result<MapLayout> lay_out_scores(const MapModel& model, const Shape& shape) {
  const std::span<const Shape> shapes(&shape, 1);
  if (shape.size() != 4) {
    return misfit(kFamily, shapes, "scores need [N,classes,h,w] or [N,h,w,classes]");
  }
  bool first = may_be_classes(shape[1], model.labels);
  bool last = may_be_classes(shape[3], model.labels);
  if (model.layout != TensorLayout::kAny) {
    const bool said_last = model.layout == TensorLayout::kNhwc;
    const bool fits = model.labels == 0 || (said_last ? last : first);
    first = fits && !said_last;
    last = fits && said_last;
  }
  if (first && last) {
    return misfit(kFamily, shapes,
                  "either axis can be the classes'; state the output's layout in the manifest");
  }
  if (!first && !last) {
    return misfit(kFamily, shapes,
                  model.labels == 0
                      ? std::string("without labels or layout nothing tells the classes' axis")
                      : str_format("no axis has a class for each of the {} labels (one channel "
                                   "has two: rest and foreground)",
                                   model.labels));
  }
  const std::int64_t channels = last ? shape[3] : shape[1];
  if (channels < 1 || std::cmp_greater(channels, kMaxMapClasses)) {
    return misfit(kFamily, shapes,
                  str_format("{} classes are not within 1..{}", channels, kMaxMapClasses));
  }
  const MapLayout map{.channels = static_cast<std::size_t>(channels),
                      .channels_last = last,
                      .classes = static_cast<std::size_t>(std::max<std::int64_t>(channels, 2))};
  return last ? sized(map, shape, shape[1], shape[2]) : sized(map, shape, shape[2], shape[3]);
}

Result<MapLayout> lay_out(const MapModel& model, DataType type, const Shape& shape) {
  if (type == DataType::kInt32 || type == DataType::kInt64) return lay_out_numbers(model, shape);
  if (type == DataType::kFloat32) return lay_out_scores(model, shape);
  return misfit(
      kFamily, std::span(&shape, 1),
      str_format("{} is neither float32 scores nor int32 or int64 class numbers", to_string(type)));
}

constexpr float kNoScore = -std::numeric_limits<float>::infinity();

/// Takes `score` for `class_id` where it beats the best so far: on a tie the earlier class stays,
/// NaN compares false, and an infinity is excluded by either bound.
void contend(float score, std::uint8_t class_id, float& best, std::uint8_t& winner) {
  const bool wins = score > best && score <= std::numeric_limits<float>::max();
  best = wins ? score : best;
  winner = wins ? class_id : winner;
}

/// False when a pixel has no finite score. Plane by plane a row at a time, so that memory is read
/// in order.
bool take_best(std::span<const float> scores, const MapLayout& map,
               std::span<std::uint8_t> classes) {
  std::vector<float> best(map.width);
  const std::size_t plane = map.height * map.width;
  for (std::size_t y = 0; y < map.height; ++y) {
    std::ranges::fill(best, kNoScore);
    std::uint8_t* row = &classes[y * map.width];
    std::fill_n(row, map.width, std::uint8_t{0});
    for (std::size_t c = 0; c < map.channels; ++c) {
      const float* from = map.channels_last ? &scores[y * map.width * map.channels + c]
                                            : &scores[c * plane + y * map.width];
      const std::size_t step = map.channels_last ? map.channels : 1;
      for (std::size_t x = 0; x < map.width; ++x) {
        contend(from[x * step], static_cast<std::uint8_t>(c), best[x], row[x]);
      }
    }
    if (std::ranges::find(best, kNoScore) != best.end()) return false;
  }
  return true;
}

/// False when a pixel's score is not finite.
bool take_foreground(std::span<const float> scores, const MapModel& model,
                     std::span<std::uint8_t> classes) {
  bool all_finite = true;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const float probability = model.logits ? sigmoid(scores[i]) : scores[i];
    all_finite = all_finite && std::isfinite(scores[i]);
    classes[i] = probability >= model.threshold ? 1 : 0;
  }
  return all_finite;
}

/// The first number that is no class, if there is one.
template <typename T>
std::optional<std::int64_t> take_numbers(std::span<const T> numbers, const MapLayout& map,
                                         std::span<std::uint8_t> classes) {
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (numbers[i] < 0 || std::cmp_greater_equal(numbers[i], map.classes)) return numbers[i];
    classes[i] = static_cast<std::uint8_t>(numbers[i]);
  }
  return std::nullopt;
}

/// The columns (or rows) of a map whose centres lie within the picture: [first, end).
struct Extent {
  std::size_t first = 0, end = 0;
};
Extent extent_of(std::size_t cells, int input, int pad, int length) {
  const auto inside = [&](std::size_t cell) {
    // Twice the centre times the number of cells, to stay whole.
    const std::int64_t at = static_cast<std::int64_t>(2 * cell + 1) * input;
    const auto count = static_cast<std::int64_t>(2 * cells);
    return at >= std::int64_t{pad} * count && at < std::int64_t{pad + length} * count;
  };
  Extent extent;
  while (extent.first < cells && !inside(extent.first)) ++extent.first;
  extent.end = extent.first;
  while (extent.end < cells && inside(extent.end)) ++extent.end;
  return extent;
}

struct Window {
  Extent x, y;
};
Window window_of(const MapLayout& map, const Letterbox* letterbox) {
  if (letterbox == nullptr) return {{0, map.width}, {0, map.height}};
  return {
      extent_of(map.width, letterbox->input_width, letterbox->pad_x, letterbox->scaled_width),
      extent_of(map.height, letterbox->input_height, letterbox->pad_y, letterbox->scaled_height)};
}

void count_pixels(std::span<const std::uint8_t> classes, const MapLayout& map, const Window& window,
                  std::span<std::uint32_t> counts) {
  std::array<std::uint32_t, kMaxMapClasses> sums{};
  for (std::size_t y = window.y.first; y < window.y.end; ++y) {
    for (std::size_t x = window.x.first; x < window.x.end; ++x) ++sums[classes[y * map.width + x]];
  }
  std::copy_n(sums.begin(), counts.size(), counts.begin());
}

/// In the first count's place, which is at most kMaxMapPixels: a pixel has no finite score.
constexpr std::uint32_t kUnusable = std::numeric_limits<std::uint32_t>::max();

class SemanticDecoder final : public OutputDecoder {
 public:
  SemanticDecoder(const MapModel& model, DataType type) : model_(model), type_(type) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* letterbox) override {
    const auto output = check_only_output(outputs, type_, item);
    if (!output) return std::unexpected(output.error());
    const Tensor& tensor = **output;
    const auto map = lay_out(model_, type_, tensor.shape);
    if (!map) return std::unexpected(map.error());

    auto map_storage = device.allocate(map->height * map->width);
    if (!map_storage) return std::unexpected(std::move(map_storage).error());
    auto count_storage = device.allocate(map->classes * sizeof(std::uint32_t));
    if (!count_storage) return std::unexpected(std::move(count_storage).error());
    const StorageRegion pixels{*map_storage, 0, map->height * map->width};
    const StorageRegion counts{*count_storage, 0, map->classes * sizeof(std::uint32_t)};
    auto fence = device.submit(
        {*map_storage, *count_storage, tensor.data.storage}, {tensor.ready},
        [source = Source{tensor.data, tensor.shape, tensor.name, tensor.type, item}, map = *map,
         model = model_, window = window_of(*map, letterbox), pixels,
         counts](const Access& access) -> Result<void> {
          const auto bytes = access.bytes(pixels);
          const std::span classes(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
          const auto usable = classify(access, source, model, map, classes);
          if (!usable) return std::unexpected(usable.error());
          auto* sums = reinterpret_cast<std::uint32_t*>(access.bytes(counts).data());
          if (*usable) {
            count_pixels(classes, map, window, {sums, map.classes});
          } else {
            sums[0] = kUnusable;
          }
          return {};
        });
    if (!fence) return std::unexpected(std::move(fence).error());

    Decoded decoded;
    decoded.class_pixels.resize(map->classes);
    PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(decoded.class_pixels)), counts,
                                  {*fence}, TransferPurpose::kMetadata));
    if (decoded.class_pixels.front() == kUnusable) {
      Decoded none;
      none.unusable = str_format("output '{}': a pixel has no finite score", tensor.name);
      return none;
    }
    decoded.device.class_map = Tensor{
        .name = "class_map",
        .type = DataType::kUint8,
        .shape = {static_cast<std::int64_t>(map->height), static_cast<std::int64_t>(map->width)},
        .data = pixels,
        .ready = *fence};
    if (letterbox != nullptr) decoded.device.letterbox = *letterbox;
    return decoded;
  }

 private:
  struct Source {
    StorageRegion region;
    Shape shape;
    std::string name;
    DataType type;
    int item;
  };

  /// False when a pixel has no finite score; kInvalidArgument for a number that is no class.
  static Result<bool> classify(const Access& access, const Source& source, const MapModel& model,
                               const MapLayout& map, std::span<std::uint8_t> classes) {
    if (map.channels > 0) {
      const auto scores = item_of<float>(access, source.region, source.shape, source.item);
      return map.channels == 1 ? take_foreground(scores, model, classes)
                               : take_best(scores, map, classes);
    }
    const auto wrong =
        source.type == DataType::kInt64
            ? take_numbers(item_of<std::int64_t>(access, source.region, source.shape, source.item),
                           map, classes)
            : take_numbers(item_of<std::int32_t>(access, source.region, source.shape, source.item),
                           map, classes);
    if (!wrong) return true;
    return fail(ErrorKind::kInvalidArgument,
                str_format("output '{}': class number {} is not within 0..{}", source.name, *wrong,
                           map.classes - 1));
  }

  const MapModel model_;
  const DataType type_;
};

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_semantic_decoder(const Manifest& manifest,
                                                               const DecodeOptions& options) {
  const auto output = only_output(kFamily, manifest);
  if (!output) return std::unexpected(output.error());
  const MapModel model{.labels = manifest.labels.size(),
                       .layout = output->layout,
                       .logits = manifest.scores == ScoreKind::kLogits,
                       .threshold = options.threshold};
  const Shape shape = shape_of(*output);
  if (is_known(shape)) {
    if (const auto map = lay_out(model, output->type, shape); !map) {
      return std::unexpected(map.error());
    }
  } else if (shape.size() != 3 && shape.size() != 4) {
    return misfit(kFamily, std::span(&shape, 1), "needs 3 or 4 dimensions");
  }
  return std::make_unique<SemanticDecoder>(model, output->type);
}

}  // namespace penstock
