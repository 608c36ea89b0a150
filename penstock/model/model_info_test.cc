// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/model_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/model/testing/temporary_folder.h"

namespace penstock {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GStreamerInfo, GivenAKeyFile_WhenRead_ThenTensorsAndRangesAreItsOwn) {
  const auto info = parse_gstreamer_info(
      "# a comment\r\n[modelinfo]\r\nversion = 1.0\r\ngroup-id=yolo-v8-out\r\n\r\n"
      "[images]\nid=yolo-v8-in\ntype=float32\ndims=1,3,640,640\ndir=input\n"
      "ranges=0.0,1.0;-1,1;0,255\n"
      "[output0]\nid=yolo-v8-out\ntype=float32\ndims=-1,84,8400\ndir=output\n"
      "dims-order=col-major\nlabels-path=/x\n");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->family, "yolov8");
  EXPECT_EQ(info->model_kind, "yolo-v8-out");
  ASSERT_EQ(info->tensors.size(), 2u);
  EXPECT_EQ(info->tensors[0].name, "images");
  EXPECT_EQ(info->tensors[0].is_input, true);
  EXPECT_THAT(info->tensors[0].dims, ElementsAre(1, 3, 640, 640));
  EXPECT_THAT(
      info->tensors[0].ranges,
      ElementsAre(ElementsAre(0.0f, 1.0f), ElementsAre(-1.0f, 1.0f), ElementsAre(0.0f, 255.0f)));
  EXPECT_EQ(info->tensors[1].type, DataType::kFloat32);
  EXPECT_THAT(info->tensors[1].dims, ElementsAre(-1, 84, 8400));
  EXPECT_EQ(info->tensors[1].dims_order, "col-major");
  EXPECT_THAT(info->unused, ElementsAre("[output0] labels-path"));
}

TEST(GStreamerInfo, GivenWhatIsNoKeyFile_WhenRead_ThenTheLineIsNamed) {
  const auto refusal = [](std::string_view text) {
    const auto info = parse_gstreamer_info(text);
    return info ? std::string("was read") : info.error().message();
  };
  const std::string head = "[modelinfo]\nversion=1.0\n";
  EXPECT_THAT(refusal(""), HasSubstr("version"));
  EXPECT_THAT(refusal("[images]\ndir=input\n"), HasSubstr("[modelinfo]"));
  EXPECT_THAT(refusal("version=1.0\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("[modelinfo]\nversion=2.0\n"), HasSubstr("2.0"));
  EXPECT_THAT(refusal(head + "words\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal(head + "[]\n"), HasSubstr("line 3"));
  EXPECT_THAT(refusal(head + "["), HasSubstr("line 3"));
  EXPECT_THAT(refusal(head + "version=1.0\n"), HasSubstr("given twice"));
  EXPECT_THAT(refusal(head + "[a]\n[a]\n"), HasSubstr("group [a] is given twice"));
  EXPECT_THAT(refusal(head + "[a]\ndims=1,x\n"), HasSubstr("'x'"));
  EXPECT_THAT(refusal(head + "[a]\ndims=1,1,1,1,1,1,1,1,1\n"), HasSubstr("too many"));
  EXPECT_THAT(refusal(head + "[a]\ndir=both\n"), HasSubstr("line 4"));
  EXPECT_THAT(refusal(head + "[a]\ndims-order=odd\n"), HasSubstr("line 4"));
  for (const char* ranges : {"1,0", "0,nan", "0", "0,1;0,1", "0,1;0,1;0,1;0,1", "0,inf", "1,1"}) {
    EXPECT_THAT(refusal(head + "[a]\nranges=" + ranges), HasSubstr("line 4")) << ranges;
  }
}

TEST(OpenVinoInfo, GivenModelInfo_WhenRead_ThenEveryKeyMeansWhatItsToolsMean) {
  const auto info = parse_openvino_info(R"({"rt_info": {"model_info": {
      "model_type": {"value": "YOLO_v8"}, "labels": "person traffic_light",
      "confidence_threshold": 0.5, "iou_threshold": {"value": "0.7"}, "pad_value": 114,
      "resize_type": "fit_to_window_letterbox", "reverse_input_channels": "True",
      "mean_values": "1.5 2 3", "scale_values": [255], "multilabel": false}}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->family, "yolov8");
  EXPECT_THAT(info->labels, ElementsAre("person", "traffic_light"));
  EXPECT_EQ(info->threshold, 0.5f);
  EXPECT_EQ(info->iou_threshold, 0.7f);
  EXPECT_EQ(info->pad, 114.0f);
  EXPECT_EQ(info->fit, Fit::kLetterboxCenter);
  EXPECT_EQ(info->order, ChannelOrder::kRgb);
  EXPECT_THAT(*info->mean, ElementsAre(1.5f, 2.0f, 3.0f));
  EXPECT_THAT(*info->std, ElementsAre(255.0f, 255.0f, 255.0f));
  EXPECT_THAT(info->unused, ElementsAre("multilabel"));
}

TEST(OpenVinoInfo, GivenAListOfLabels_WhenRead_ThenTheirSpacesStay) {
  const auto info = parse_openvino_info(
      R"({"model_info": {"labels": ["traffic light", "car"], "resize_type": "crop"}})");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_THAT(info->labels, ElementsAre("traffic light", "car"));
  // A crop is no fit here: the user has to choose one.
  EXPECT_FALSE(info->fit);
  EXPECT_THAT(info->unused, Contains(HasSubstr("crop")));
}

TEST(OpenVinoInfo, GivenWhatItCantBe_WhenRead_ThenTheKeyIsNamed) {
  const auto refusal = [](std::string_view inside) {
    const auto info = parse_openvino_info("{\"model_info\": {" + std::string(inside) + "}}");
    return info ? std::string("was read") : info.error().message();
  };
  EXPECT_THAT(refusal(R"("iou_threshold": 1.5)"), HasSubstr("model_info.iou_threshold"));
  EXPECT_THAT(refusal(R"("confidence_threshold": "high")"), HasSubstr("confidence_threshold"));
  EXPECT_THAT(refusal(R"("pad_value": -1)"), HasSubstr("pad_value"));
  EXPECT_THAT(refusal(R"("mean_values": "1 2")"), HasSubstr("mean_values"));
  EXPECT_THAT(refusal(R"("scale_values": "1 0 1")"), HasSubstr("scale_values"));
  EXPECT_THAT(refusal(R"("reverse_input_channels": 3)"), HasSubstr("reverse_input_channels"));
  EXPECT_THAT(refusal(R"("labels": "")"), HasSubstr("labels"));
  EXPECT_THAT(refusal(R"("labels": [["a"]])"), HasSubstr("labels"));
  EXPECT_THAT(refusal(R"("labels": {"values": "a"})"), HasSubstr("without 'value'"));
  EXPECT_THAT(refusal(R"("labels": "a", "labels": "b")"), HasSubstr("given twice"));
  EXPECT_EQ(parse_openvino_info("{").error().kind(), ErrorKind::kCorrupt);
  EXPECT_EQ(parse_openvino_info("{}").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(parse_openvino_info("[1]").error().kind(), ErrorKind::kNotFound);
}

TEST(OpenVinoInfo, GivenMetadata_WhenRead_ThenItsPathsAreKeys) {
  const auto info = parse_openvino_metadata({{"producer", "x"},
                                             {"model_info labels", "cat dog"},
                                             {"model_info.iou_threshold", "0.25"},
                                             {"model_information", "y"}});
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_THAT(info->labels, ElementsAre("cat", "dog"));
  EXPECT_EQ(info->iou_threshold, 0.25f);
  EXPECT_THAT(info->unused, IsEmpty());
  EXPECT_EQ(parse_openvino_metadata({{"names", "x"}}).error().kind(), ErrorKind::kNotFound);
}

TEST(FindModelInfo, GivenFilesBesideTheModel_WhenSearched_ThenTheLongerNameIsBelieved) {
  const model_testing::TemporaryFolder folder;
  const auto onnx = folder.path() / "a.onnx";
  folder.write("a.modelinfo", "[modelinfo]\nversion=1.0\ngroup-id=short\n");
  folder.write("a.onnx.modelinfo", "[modelinfo]\nversion=1.0\ngroup-id=long\n");
  folder.write("a.onnx.json", R"({"about": "something else"})");
  folder.write("a.json", R"({"model_info": {"labels": "x"}})");
  const auto infos = find_model_info(onnx, {{"model_info labels", "y"}});
  ASSERT_TRUE(infos) << infos.error().message();
  ASSERT_EQ(infos->size(), 3u);
  EXPECT_EQ((*infos)[0].model_kind, "long");
  EXPECT_EQ((*infos)[0].source, "a.onnx.modelinfo");
  EXPECT_EQ((*infos)[1].source, "a.json");
  EXPECT_EQ((*infos)[2].source, "metadata 'model_info'");
  folder.write("a.onnx.json", "{");
  EXPECT_THAT(find_model_info(onnx, {}).error().message(), HasSubstr("a.onnx.json"));
  folder.write("a.onnx.json", std::string(kMaxModelInfoBytes + 1, ' '));
  EXPECT_EQ(find_model_info(onnx, {}).error().kind(), ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace penstock
