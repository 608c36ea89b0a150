// SPDX-License-Identifier: Apache-2.0
//
// The families that speak of the whole picture instead of objects. Each has one file; all take the
// outputs' shapes as they come, check them against the labels when the model is opened and again
// before every run, and read back compact records only.
//
//   classification  [N, classes], [N, classes, 1, 1] or [N, 1, 1, classes], float32
//   semantic        [N, classes, h, w] or [N, h, w, classes], float32; one channel: foreground.
//                   Or class numbers, int32 or int64: [N, h, w], [N, 1, h, w], [N, h, w, 1]
//   embedding       [N, values] or [N, values, 1, 1], float32
//   raw             any number of outputs of any type
//   ctc             [N, steps, classes], float32; class 0 is the blank
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "penstock/base/error.h"
#include "penstock/memory/tensor.h"
#include "penstock/task/output_decoder.h"

namespace penstock {

/// What of a frame's tensors is read back, together (contract A01).
inline constexpr std::size_t kMaxReadBack = std::size_t{256} << 10;
/// Class numbers are one byte in a class map.
inline constexpr std::size_t kMaxMapClasses = 256;
/// Budgets of contract P04: more classes than any classifier has, more pixels than any map.
inline constexpr std::int64_t kMaxClasses = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxMapPixels = std::int64_t{1} << 26;
/// A line of text has fewer characters than this.
inline constexpr std::int64_t kMaxTextSteps = 4096;

/// Softmax of logits over the finite ones (the others are as if they were not there), or
/// probabilities as they come; then the manifest's top_k that reach the threshold, score
/// descending, then index ascending. NaN and infinities never win.
Result<std::unique_ptr<OutputDecoder>> create_classification_decoder(const Manifest& manifest,
                                                                     const DecodeOptions& options);

/// The class of each pixel stays on the device; how many pixels of the picture each class has is
/// read back. Of equal scores the lower class wins, NaN and infinities never do. Which axis holds
/// the classes is told by the labels, or by the output's layout in the manifest; kInvalidArgument
/// where neither decides. A model with one channel has no labels or two (rest and foreground): a
/// pixel is foreground, class 1, where its probability is >= the threshold. Unusable is a map with
/// a pixel without any finite score (of one channel: whose only score is NaN or infinite). At
/// decode kInvalidArgument names the tensor: a class number that the labels don't have.
Result<std::unique_ptr<OutputDecoder>> create_semantic_decoder(const Manifest& manifest,
                                                               const DecodeOptions& options);

/// At most 256 KiB (kExhausted). Unusable is a vector with a value that is not finite, or of length
/// 0 that is to be normalised.
Result<std::unique_ptr<OutputDecoder>> create_embedding_decoder(const Manifest& manifest,
                                                                const DecodeOptions& options);

/// The outputs stay on the device. With DecodeOptions::read_tensors a frame's part of each is read
/// back, too, and has a leading dimension of 1; a model that takes one picture at a time, whatever
/// its constants are, may have outputs without a batch dimension, which are the frame's as a whole.
/// More than 256 KiB a frame is kExhausted, when opened if the shapes are fixed, else at decode; a
/// 64-bit integer that no double holds (beyond 2^53) is kInvalidArgument.
Result<std::unique_ptr<OutputDecoder>> create_raw_decoder(const Manifest& manifest,
                                                          const DecodeOptions& options);

/// A line of text by greedy CTC: the best class of each step, of equal ones the lower; repeats
/// count once, then class 0, the blank, goes. A character's score is its class's probability in the
/// first of its steps, and the line has none whose mean is below the threshold. Labels are the
/// characters, one a class. A line with a step without any finite score is unusable.
Result<std::unique_ptr<OutputDecoder>> create_ctc_decoder(const Manifest& manifest,
                                                          const DecodeOptions& options);

// What they share.

/// The output's dimensions, -1 where one is not fixed.
Shape shape_of(const TensorSpec& spec);
/// Whether every dimension but the batch is known.
bool is_known(const Shape& shape);
/// The manifest's only output. kInvalidArgument: there are others, or it has none.
Result<TensorSpec> only_output(std::string_view family, const Manifest& manifest);
/// One tensor of the type with all its bytes and a batch item `item`; kInvalidArgument names it.
Result<void> check_output(const Tensor& output, DataType type, int item);
/// The only tensor of a run, checked like that.
Result<const Tensor*> check_only_output(std::span<const Tensor> outputs, DataType type, int item);

/// The values of batch item `item`; `output` has been checked.
template <typename T>
std::span<const T> item_of(const Access& access, const StorageRegion& region, const Shape& shape,
                           int item) {
  const std::size_t count = region.size / sizeof(T) / static_cast<std::size_t>(shape[0]);
  const auto* values = reinterpret_cast<const T*>(access.bytes(region).data());
  return {values + static_cast<std::size_t>(item) * count, count};
}

}  // namespace penstock
