// SPDX-License-Identifier: Apache-2.0
//
// Networks that really look at the whole picture, for tests of those families from frame to result.
// Inputs [N, 3, size, size] RGB, level / 255, letterboxed on grey. Tests only.
#pragma once

#include <string_view>

#include "penstock/model/testing/test_models.h"

namespace penstock::model_testing {

enum class PictureReader {
  /// Which of red, green and blue the middle half of the picture is: logits [N, 3], 20 x its mean
  /// level.
  kCenterLogits,
  /// The same through a softmax: probabilities [N, 3].
  kCenterProbabilities,
  /// What each pixel is of background, red, green and blue: scores [N, 4, size, size]; the
  /// background's is 0.6 everywhere, a colour's is its level less the mean of the other two.
  kColorScores,
  kColorScoresLast,  ///< [N, size, size, 4]
  kColorNumbers,     ///< int64 [N, size, size], the best of the four.
  /// Whether a pixel is red: one channel of logits, [N, 1, size, size].
  kRedLogits,
  /// Mean red, green and blue, [N, 3], normalised by the decoder.
  kMeanEmbedding,
  /// Where the picture is red, as a text detector says it: probabilities [N, 1, size, size].
  kRedTexts,
  /// One letter an eighth of the picture's width, r, g or b by its colour and blank where it has
  /// none: probabilities [N, 8, 4].
  kColorLetters,
  /// BlazeFace's four outputs; `size` is a multiple of 16. A cell of the fine grid that is all red
  /// is a face of its size, whose keypoints lie on its diagonal from corner to corner. Only the
  /// first of a cell's two anchors says so.
  kRedFaces,
  /// "mean" [N, 3] and "numbers" int64 [N, size, size] of kColorNumbers, as raw tensors.
  kRaw,
};
std::string_view to_string(PictureReader reader);

TestModel make_picture_reader(PictureReader reader, int size);

}  // namespace penstock::model_testing
