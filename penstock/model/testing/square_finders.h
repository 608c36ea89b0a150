// SPDX-License-Identifier: Apache-2.0
//
// The square finder of test_models.h with the output layouts of the detector families: networks
// that really find squares, for tests of a family from frame to box. Tests only.
#pragma once

#include <string_view>

#include "penstock/model/testing/test_models.h"

namespace penstock::model_testing {

enum class BoxLayout {
  kYolov5,        ///< [N, rows, 5 + 3]
  kYolov8,        ///< [N, 4 + 3, rows]
  kEndToEnd,      ///< [N, rows, 6]
  kYolox,         ///< [N, cells, 5 + 3], grid not applied
  kRtdetr,        ///< [N, rows, 4 + 3]
  kRtdetrLogits,  ///< logits [N, rows, 3] and boxes [N, rows, 4]
  kSsdList,       ///< [1, 1, rows, 7]
  kSsdFour        ///< boxes [N, rows, 4], classes and scores [N, rows], count [N]
};
std::string_view to_string(BoxLayout layout);

/// `size` is a multiple of 32. SSD lists take a batch of one.
TestModel make_square_finder(BoxLayout layout, int size);

}  // namespace penstock::model_testing
