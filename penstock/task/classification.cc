// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/task/box_family.h"
#include "penstock/task/whole_picture.h"

namespace penstock {
namespace {

constexpr std::string_view kFamily = "classification";

/// `shape` is known but for the batch.
Result<std::size_t> count_classes(const Shape& shape, std::size_t labels) {
  const std::span<const Shape> shapes(&shape, 1);
  std::int64_t classes = -1;
  if (shape.size() == 2) {
    classes = shape[1];
  } else if (shape.size() == 4 && shape[2] == 1 && shape[3] == 1) {
    classes = shape[1];
  } else if (shape.size() == 4 && shape[1] == 1 && shape[2] == 1) {
    classes = shape[3];
  } else {
    return misfit(kFamily, shapes, "needs [N,classes], [N,classes,1,1] or [N,1,1,classes]");
  }
  if (classes < 1) return misfit(kFamily, shapes, "there is no class");
  if (classes > kMaxClasses) {
    return fail(ErrorKind::kExhausted,
                str_format("{} classes are more than the {} that family '{}' "
                           "takes",
                           classes, kMaxClasses, kFamily));
  }
  if (labels != 0 && std::cmp_not_equal(classes, labels)) {
    return misfit(kFamily, shapes, str_format("{} labels for {} classes", labels, classes));
  }
  return static_cast<std::size_t>(classes);
}

Result<void> check_spec(const TensorSpec& spec, std::size_t labels) {
  const Shape shape = shape_of(spec);
  if (spec.type != DataType::kFloat32) {
    return misfit(kFamily, std::span(&shape, 1),
                  str_format("'{}' is {}, not float32", spec.name, to_string(spec.type)));
  }
  if (is_known(shape)) {
    if (const auto classes = count_classes(shape, labels); !classes) {
      return std::unexpected(classes.error());
    }
  } else if (shape.size() != 2 && shape.size() != 4) {
    return misfit(kFamily, std::span(&shape, 1), "needs 2 or 4 dimensions");
  }
  return {};
}

/// Probability = exp(value - top) / sum, stable because no exponent is positive.
struct Softmax {
  double top = 0;
  double sum = 0;

  explicit Softmax(std::span<const float> logits) {
    top = -std::numeric_limits<double>::infinity();
    for (const float value : logits) {
      if (std::isfinite(value)) top = std::max(top, static_cast<double>(value));
    }
    for (const float value : logits) {
      if (std::isfinite(value)) sum += std::exp(static_cast<double>(value) - top);
    }
  }
  float of(float value) const {
    return static_cast<float>(std::exp(static_cast<double>(value) - top) / sum);
  }
};

bool precedes(const ClassRecord& a, const ClassRecord& b) {
  return a.score != b.score ? a.score > b.score : a.class_id < b.class_id;
}

/// Fills `best` in order; places that no class takes have class -1.
template <typename Score>
void find_best(std::span<const float> values, Score score_of, float threshold,
               std::span<ClassRecord> best) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const ClassRecord record{.class_id = static_cast<std::int32_t>(i),
                             .score = score_of(values[i])};
    if (!(record.score >= threshold)) continue;
    if (found == best.size() && !precedes(record, best.back())) continue;
    const auto end = best.begin() + static_cast<std::ptrdiff_t>(found);
    const auto place = std::upper_bound(best.begin(), end, record, precedes);
    found = std::min(found + 1, best.size());
    std::move_backward(place, best.begin() + static_cast<std::ptrdiff_t>(found) - 1,
                       best.begin() + static_cast<std::ptrdiff_t>(found));
    *place = record;
  }
  std::fill(best.begin() + static_cast<std::ptrdiff_t>(found), best.end(),
            ClassRecord{.class_id = -1, .score = 0});
}

class ClassificationDecoder final : public OutputDecoder {
 public:
  ClassificationDecoder(const Manifest& manifest, float threshold)
      : labels_(manifest.labels.size()),
        top_k_(static_cast<std::size_t>(manifest.top_k)),
        logits_(manifest.scores == ScoreKind::kLogits),
        threshold_(threshold) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* /*letterbox*/) override {
    const auto output = check_only_output(outputs, DataType::kFloat32, item);
    if (!output) return std::unexpected(output.error());
    const Tensor& tensor = **output;
    const auto classes = count_classes(tensor.shape, labels_);
    if (!classes) return std::unexpected(classes.error());

    const std::size_t count = std::min(top_k_, *classes);
    auto storage = device.allocate(count * sizeof(ClassRecord));
    if (!storage) return std::unexpected(std::move(storage).error());
    const StorageRegion records{*storage, 0, count * sizeof(ClassRecord)};
    auto fence = device.submit(
        {*storage, tensor.data.storage}, {tensor.ready},
        [region = tensor.data, shape = tensor.shape, item, records, logits = logits_,
         threshold = threshold_, count](const Access& access) -> Result<void> {
          const auto values = item_of<float>(access, region, shape, item);
          std::vector<ClassRecord> best(count);
          if (logits) {
            const Softmax softmax(values);
            find_best(values, [&](float value) { return softmax.of(value); }, threshold, best);
          } else {
            find_best(values, [](float value) { return value; }, threshold, best);
          }
          std::memcpy(access.bytes(records).data(), best.data(), count * sizeof(ClassRecord));
          return {};
        });
    if (!fence) return std::unexpected(std::move(fence).error());

    Decoded decoded;
    decoded.classes.resize(count);
    PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(decoded.classes)), records,
                                  {*fence}, TransferPurpose::kMetadata));
    std::erase_if(decoded.classes, [](const ClassRecord& record) { return record.class_id < 0; });
    return decoded;
  }

 private:
  const std::size_t labels_;
  const std::size_t top_k_;
  const bool logits_;
  const float threshold_;
};

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_classification_decoder(const Manifest& manifest,
                                                                     const DecodeOptions& options) {
  if (manifest.top_k < 1 || manifest.top_k > kMaxTopK) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("top_k {} is not within 1..{}", manifest.top_k, kMaxTopK));
  }
  const auto output = only_output(kFamily, manifest);
  if (!output) return std::unexpected(output.error());
  PENSTOCK_TRY(check_spec(*output, manifest.labels.size()));
  return std::make_unique<ClassificationDecoder>(manifest, options.threshold);
}

}  // namespace penstock
