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

constexpr std::string_view kFamily = "ctc";
constexpr std::int32_t kBlank = 0;

/// What is fixed of `shape` fits.
Result<void> check_shape(const Shape& shape, std::size_t labels) {
  const std::span<const Shape> shapes(&shape, 1);
  if (shape.size() != 3) return misfit(kFamily, shapes, "needs [N,steps,classes]");
  if (shape[2] == 0 || (shape[2] > 0 && std::cmp_not_equal(shape[2], labels))) {
    return misfit(kFamily, shapes,
                  str_format("{} labels for {} classes; the first label stands for the blank",
                             labels, shape[2]));
  }
  if (shape[1] == 0 || shape[1] > kMaxTextSteps) {
    return fail(ErrorKind::kExhausted, str_format("{} steps are not within 1..{}, which family "
                                                  "'{}' takes",
                                                  shape[1], kMaxTextSteps, kFamily));
  }
  return {};
}

/// The first of the best finite scores; -1 when there is none.
std::int32_t best_of(std::span<const float> scores) {
  std::int32_t best = -1;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) continue;
    if (best < 0 || scores[i] > scores[static_cast<std::size_t>(best)]) {
      best = static_cast<std::int32_t>(i);
    }
  }
  return best;
}

/// Softmax over the finite logits, of the best of them.
float best_probability(std::span<const float> logits, std::int32_t best) {
  const auto top = static_cast<double>(logits[static_cast<std::size_t>(best)]);
  double sum = 0;
  for (const float value : logits) {
    if (std::isfinite(value)) sum += std::exp(static_cast<double>(value) - top);
  }
  return static_cast<float>(1 / sum);
}

struct TextModel {
  std::size_t labels = 0;
  bool logits = false;
  float threshold = 0;
};

constexpr std::int32_t kNoCharacter = -1;
constexpr std::int32_t kUnusable = -2;  ///< In the first place: a step has no finite score.

/// Fills `line` from its start; places that no character takes have kNoCharacter.
void read_line(std::span<const float> values, const TextModel& model, std::span<ClassRecord> line) {
  std::size_t count = 0;
  double sum = 0;
  std::int32_t before = kBlank;
  for (std::size_t step = 0; step < line.size(); ++step) {
    const auto scores = values.subspan(step * model.labels, model.labels);
    const std::int32_t best = best_of(scores);
    if (best < 0) {
      std::ranges::fill(line, ClassRecord{.class_id = kUnusable, .score = 0});
      return;
    }
    if (best != kBlank && best != before) {
      const float score =
          model.logits ? best_probability(scores, best) : scores[static_cast<std::size_t>(best)];
      line[count++] = {.class_id = best, .score = score};
      sum += static_cast<double>(score);
    }
    before = best;
  }
  if (count > 0 && !(sum / static_cast<double>(count) >= static_cast<double>(model.threshold))) {
    count = 0;
  }
  std::ranges::fill(line.subspan(count), ClassRecord{.class_id = kNoCharacter, .score = 0});
}

class CtcDecoder final : public OutputDecoder {
 public:
  explicit CtcDecoder(const TextModel& model) : model_(model) {}

  Result<Decoded> decode(Device& device, std::span<const Tensor> outputs, int item,
                         const Letterbox* /*letterbox*/) override {
    const auto output = check_only_output(outputs, DataType::kFloat32, item);
    if (!output) return std::unexpected(output.error());
    const Tensor& tensor = **output;
    PENSTOCK_TRY(check_shape(tensor.shape, model_.labels));

    const auto steps = static_cast<std::size_t>(tensor.shape[1]);
    auto storage = device.allocate(steps * sizeof(ClassRecord));
    if (!storage) return std::unexpected(std::move(storage).error());
    const StorageRegion records{*storage, 0, steps * sizeof(ClassRecord)};
    auto fence = device.submit(
        {*storage, tensor.data.storage}, {tensor.ready},
        [region = tensor.data, shape = tensor.shape, item, records, steps,
         model = model_](const Access& access) -> Result<void> {
          std::vector<ClassRecord> line(steps);
          read_line(item_of<float>(access, region, shape, item), model, line);
          std::memcpy(access.bytes(records).data(), line.data(), steps * sizeof(ClassRecord));
          return {};
        });
    if (!fence) return std::unexpected(std::move(fence).error());

    Decoded decoded;
    decoded.characters.resize(steps);
    PENSTOCK_TRY(device.read_back(std::as_writable_bytes(std::span(decoded.characters)), records,
                                  {*fence}, TransferPurpose::kMetadata));
    if (decoded.characters.front().class_id == kUnusable) {
      Decoded none;
      none.unusable = str_format("output '{}': a step has no finite score", tensor.name);
      return none;
    }
    std::erase_if(decoded.characters,
                  [](const ClassRecord& record) { return record.class_id < 0; });
    return decoded;
  }

 private:
  const TextModel model_;
};

}  // namespace

Result<std::unique_ptr<OutputDecoder>> create_ctc_decoder(const Manifest& manifest,
                                                          const DecodeOptions& options) {
  const auto output = only_output(kFamily, manifest);
  if (!output) return std::unexpected(output.error());
  const Shape shape = shape_of(*output);
  if (output->type != DataType::kFloat32) {
    return misfit(kFamily, std::span(&shape, 1),
                  str_format("'{}' is {}, not float32", output->name, to_string(output->type)));
  }
  if (manifest.labels.size() < 2) {
    return misfit(kFamily, std::span(&shape, 1),
                  str_format("{} labels; it needs one a class, the first for the blank",
                             manifest.labels.size()));
  }
  if (std::cmp_greater(manifest.labels.size(), kMaxClasses)) {
    return fail(ErrorKind::kExhausted, str_format("{} labels are more than the {} that family '{}' "
                                                  "takes",
                                                  manifest.labels.size(), kMaxClasses, kFamily));
  }
  PENSTOCK_TRY(check_shape(shape, manifest.labels.size()));
  return std::make_unique<CtcDecoder>(TextModel{.labels = manifest.labels.size(),
                                                .logits = manifest.scores == ScoreKind::kLogits,
                                                .threshold = options.threshold});
}

}  // namespace penstock
