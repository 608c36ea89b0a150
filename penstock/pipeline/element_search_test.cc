// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/element_search.h"

#include <gst/gst.h>
#include <gtest/gtest.h>

#include <string>

namespace penstock {
namespace {

class ElementSearchTest : public testing::Test {
 protected:
  void SetUp() override {
    gst_init(nullptr, nullptr);
    bin_ = GST_BIN(gst_object_ref_sink(gst_bin_new("outer")));
  }
  void TearDown() override { gst_object_unref(bin_); }
  static GstElement* add(GstBin* bin, const char* factory, const char* name) {
    GstElement* element = gst_element_factory_make(factory, name);
    EXPECT_TRUE(gst_bin_add(bin, element));
    return element;
  }
  static bool is_queue(GstElement* element) {
    GstElementFactory* factory = gst_element_get_factory(element);
    return factory != nullptr && std::string(GST_OBJECT_NAME(factory)) == "queue";
  }
  GstBin* bin_ = nullptr;
};

TEST_F(ElementSearchTest, GivenABinInABin_WhenSearched_ThenTheElementWithinIsFound) {
  auto* inner = GST_BIN(add(bin_, "bin", "inner"));
  GstElement* queue = add(inner, "queue", "q");
  add(bin_, "identity", "i");
  GstElement* found = find_last(gst_bin_iterate_recurse(bin_), is_queue);
  EXPECT_EQ(found, queue);
  gst_object_unref(found);
  EXPECT_EQ(find_last(gst_bin_iterate_recurse(bin_), [](GstElement*) { return false; }), nullptr);
}

TEST_F(ElementSearchTest, GivenABinThatGrowsMeanwhile_WhenSearched_ThenWhatCameIsFoundToo) {
  add(bin_, "identity", "first");
  add(bin_, "identity", "second");
  GstElement* came = nullptr;
  GstElement* found = find_last(gst_bin_iterate_recurse(bin_), [&](GstElement* element) {
    if (came == nullptr) came = add(bin_, "queue", "late");
    return is_queue(element);
  });
  ASSERT_NE(came, nullptr);
  EXPECT_EQ(found, came);
  if (found != nullptr) gst_object_unref(found);
}

TEST_F(ElementSearchTest, GivenWhatWasFoundIsTakenAway_WhenTheWalkBeginsAnew_ThenItIsNotTold) {
  add(bin_, "identity", "i");
  GstElement* queue = add(bin_, "queue", "q");
  bool removed = false;
  GstElement* found = find_last(gst_bin_iterate_recurse(bin_), [&](GstElement* element) {
    const bool wanted = is_queue(element);
    if (wanted && !removed) {
      removed = true;
      EXPECT_TRUE(gst_bin_remove(bin_, queue));
    }
    return wanted;
  });
  EXPECT_EQ(found, nullptr);
}

}  // namespace
}  // namespace penstock
