// SPDX-License-Identifier: Apache-2.0
#include <gst/analytics/analytics.h>
#include <gst/gst.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gst/testing/element_properties.h"
#include "gst/testing/infer_fixture.h"

namespace penstock::gst {
namespace {

class Value {
 public:
  explicit Value(GType type) { g_value_init(&value_, type); }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  ~Value() { g_value_unset(&value_); }
  GValue* get() { return &value_; }

 private:
  GValue value_ = G_VALUE_INIT;
};

/// Another legal value than the current one; false when the type has only one.
bool change(GParamSpec* spec, GValue* value) {
  if (G_IS_PARAM_SPEC_STRING(spec)) {
    const gchar* now = g_value_get_string(value);
    g_value_set_string(value, now != nullptr && std::strcmp(now, "other") == 0 ? "third" : "other");
  } else if (G_IS_PARAM_SPEC_UINT(spec)) {
    g_value_set_uint(value, g_value_get_uint(value) == 2 ? 3 : 2);
  } else if (G_IS_PARAM_SPEC_UINT64(spec)) {
    g_value_set_uint64(value, g_value_get_uint64(value) + 5);
  } else if (G_IS_PARAM_SPEC_FLOAT(spec)) {
    g_value_set_float(value, g_value_get_float(value) == 0.25f ? 0.5f : 0.25f);
  } else if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
    g_value_set_boolean(value, !g_value_get_boolean(value));
  } else if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* klass = G_PARAM_SPEC_ENUM(spec)->enum_class;
    if (klass->n_values < 2) return false;
    g_value_set_enum(value, g_value_get_enum(value) == klass->values[0].value
                                ? klass->values[1].value
                                : klass->values[0].value);
  } else {
    ADD_FAILURE() << "property '" << spec->name << "' has a type this test doesn't know";
    return false;
  }
  return true;
}

class L01 : public InferFixture {};

TEST_P(L01, GivenTheElement_WhenItsPropertiesAreListed_ThenTheyAreTheDocumentedOnes) {
  const auto element = make_element();
  const std::set<std::string> expected{"model",
                                       "model-instance",
                                       "models-folder",
                                       "device",
                                       "policy",
                                       "batch-size",
                                       "max-wait",
                                       "threshold",
                                       "iou-threshold",
                                       "labels",
                                       "max-objects",
                                       "interval",
                                       "roi",
                                       "queue-depth",
                                       "engine-library",
                                       "workers",
                                       "stats",
                                       "read-tensors",
                                       "provider-library",
                                       "burst",
                                       "burst-model",
                                       "burst-reconnect",
                                       "object-classes",
                                       "object-min-size",
                                       "reinfer-interval",
                                       "tiles",
                                       "tile-overlap"};
  std::set<std::string> found;
  for (GParamSpec* spec : own_properties(element.get())) {
    found.insert(spec->name);
    EXPECT_GT(std::strlen(g_param_spec_get_blurb(spec)), 10u) << spec->name;
    EXPECT_EQ(std::string(spec->name).find("strict"), std::string::npos);
  }
  EXPECT_EQ(found, expected);
}

TEST_P(L01, GivenEveryProperty_WhenSet_ThenItChangesInNullAndReadyAndNeverAbove) {
  WarningTrap warnings;
  for (const GstState state :
       {GST_STATE_NULL, GST_STATE_READY, GST_STATE_PAUSED, GST_STATE_PLAYING}) {
    const auto element = make_element();
    ASSERT_NE(gst_element_set_state(element.get(), state), GST_STATE_CHANGE_FAILURE);
    for (GParamSpec* spec : own_properties(element.get())) {
      SCOPED_TRACE(spec->name);
      if ((spec->flags & G_PARAM_WRITABLE) == 0) continue;
      EXPECT_TRUE(spec->flags & GST_PARAM_MUTABLE_READY);
      Value before(spec->value_type), wanted(spec->value_type), after(spec->value_type);
      g_object_get_property(G_OBJECT(element.get()), spec->name, before.get());
      g_value_copy(before.get(), wanted.get());
      if (!change(spec, wanted.get())) continue;
      g_object_set_property(G_OBJECT(element.get()), spec->name, wanted.get());
      g_object_get_property(G_OBJECT(element.get()), spec->name, after.get());
      const bool may = state <= GST_STATE_READY;
      EXPECT_EQ(g_param_values_cmp(spec, after.get(), may ? wanted.get() : before.get()), 0);
      const auto said = warnings.take();
      ASSERT_EQ(said.size(), may ? 0u : 1u);
      if (!may) {
        EXPECT_NE(said[0].find(spec->name), std::string::npos) << said[0];
      }
    }
    gst_element_set_state(element.get(), GST_STATE_NULL);
  }
}

TEST_P(L01, GivenAPropertyChangedInReady_WhenStarted_ThenItTakesEffect) {
  const auto element = make_element();
  element_ = element.get();
  ASSERT_EQ(gst_element_set_state(element_, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  g_object_set(element_, "model", "/nonexistent", nullptr);
  EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  EXPECT_EQ(errors().size(), 1u);
  // It is in READY still.
  g_object_set(element_, "model", model_folder().c_str(), nullptr);
  EXPECT_NE(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
  EXPECT_TRUE(errors().empty());
  gst_element_set_state(element_, GST_STATE_NULL);
}

TEST_P(L01, GivenASharedInstanceWithOneUser_WhenChangedInReady_ThenItStartsWithTheNewSettings) {
  const auto element = make_element({"model-instance=m"});
  element_ = element.get();
  ASSERT_EQ(gst_element_set_state(element_, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  g_object_set(element_, "threshold", 0.95f, nullptr);
  ASSERT_NE(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE)
      << ::testing::PrintToString(errors());
  harness_.reset(gst_harness_new_with_element(element_, "sink", "src"));
  gst_harness_set_src_caps_str(harness_.get(), caps().c_str());
  EXPECT_EQ(gst_harness_push(harness_.get(), make_frame(0).release()), GST_FLOW_OK);
  const BufferPtr out(gst_harness_pull(harness_.get()));
  ASSERT_NE(out, nullptr);
  GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out.get());
  ASSERT_NE(meta, nullptr);
  EXPECT_EQ(gst_analytics_relation_get_length(meta), 0u) << "the old threshold finds two";
}

INSTANTIATE_TEST_SUITE_P(cpu, L01, ::testing::Values("cpu"));

}  // namespace
}  // namespace penstock::gst
