// SPDX-License-Identifier: Apache-2.0
//
// What a manifest says of decoding holds for peninfer as for `penstock model try` (contract P01),
// on whole frames and where tiles are put together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gst/testing/object_fixture.h"
#include "penstock/model/testing/temporary_folder.h"

namespace penstock::gst {
namespace {

using model_testing::ConstantBox;
using ::testing::Values;

constexpr int kSide = 64;

/// Answers `boxes`, with this in its manifest's "postprocess".
std::string answering(const std::vector<ConstantBox>& boxes, const std::string& name,
                      const std::string& postprocess) {
  auto model = model_testing::make_constant_nanodet(kSide, 2, boxes);
  model.name = name;
  model.preprocess.fit = Fit::kStretch;
  model.postprocess = postprocess;
  static std::vector<std::unique_ptr<model_testing::TemporaryFolder>> folders;
  const auto& folder = *folders.emplace_back(std::make_unique<model_testing::TemporaryFolder>());
  return "model=" + write_model_folder(model, folder.path()).string();
}

struct Said {
  std::string postprocess;
  std::size_t objects;
};

class P01 : public ObjectFixture {
 protected:
  std::size_t found(const std::string& model, int width, int height,
                    const std::vector<std::string>& properties = {}) {
    std::vector<std::string> all = properties;
    all.push_back(model);
    harness_.reset();
    play(all);
    send_caps(CapsPtr(gst_caps_from_string(caps("NV12", width, height).c_str())));
    const BufferPtr out = through(make_frame(pts(0), "NV12", width, height));
    const auto analysis = share_analysis(out.get());
    EXPECT_NE(analysis, nullptr);
    return analysis == nullptr ? 0 : analysis->result.objects.size();
  }
};

// A cell of 8 and one of 8 beside it, whose boxes are both (24, 16)-(48, 40): classes 0 and 1.
const std::vector<ConstantBox> kSameBox{{0, 0.9f, 8, 4, 3, 1.5f, 1.5f, 1.5f, 1.5f},
                                        {1, 0.6f, 8, 3, 3, 0.5f, 1.5f, 2.5f, 1.5f}};

TEST_P(P01,
       GivenTwoClassesInOnePlace_WhenInferred_ThenTheManifestSaysWhetherOneSuppressesTheOther) {
  for (const Said& said :
       {Said{R"("threshold": 0.4, "iou_threshold": 0.5)", 2},
        {R"("threshold": 0.4, "iou_threshold": 0.5, "class_agnostic": false)", 2},
        {R"("threshold": 0.4, "iou_threshold": 0.5, "class_agnostic": true)", 1},
        {R"("threshold": 0.4, "iou_threshold": 1, "class_agnostic": true)", 2},
        {R"("threshold": 0.7, "iou_threshold": 0.5)", 1}}) {
    const std::string model = answering(kSameBox, "same-box", said.postprocess);
    EXPECT_EQ(found(model, kSide, kSide), said.objects) << said.postprocess;
  }
  const std::string agnostic = answering(
      kSameBox, "same-box", R"("threshold": 0.4, "iou_threshold": 0.5, "class_agnostic": true)");
  EXPECT_EQ(found(agnostic, kSide, kSide, {"iou-threshold=1"}), 2u) << "a property wins";
}

// Tiles of 64 x 64 at 0 and at 32: the first tile's box of class 0, (34, 26)-(38, 30), is where the
// second has its box of class 1.
TEST_P(P01, GivenTwoClassesInOnePlaceOfTwoTiles_WhenMerged_ThenTheManifestSaysTheSame) {
  const std::vector<ConstantBox> boxes{{0, 0.9f, 8, 4, 3, 0.25f, 0.25f, 0.25f, 0.25f},
                                       {1, 0.6f, 8, 0, 3, 0.25f, 0.25f, 0.25f, 0.25f}};
  for (const Said& said :
       {Said{R"("threshold": 0.4, "iou_threshold": 0.5)", 4},
        {R"("threshold": 0.4, "iou_threshold": 0.5, "class_agnostic": true)", 3}}) {
    const std::string model = answering(boxes, "tiled", said.postprocess);
    EXPECT_EQ(found(model, 96, 64, {"roi=tiles", "tiles=2x1", "tile-overlap=50"}), said.objects)
        << said.postprocess;
  }
}

INSTANTIATE_TEST_SUITE_P(cpu, P01, Values("cpu"));
INSTANTIATE_TEST_SUITE_P(sim, P01, Values("sim"));

}  // namespace
}  // namespace penstock::gst
