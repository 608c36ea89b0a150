// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/control_commands.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock {
namespace {

/// Keeps what it was told to do.
class Target final : public ControlTarget {
 public:
  Result<void> add(const PipelineSource& source) override {
    added.push_back(source);
    return answer;
  }
  Result<void> remove(const std::string& name) override {
    removed.push_back(name);
    return answer;
  }
  std::vector<SourceStatus> statuses() const override { return sources; }

  Result<void> answer;
  std::vector<PipelineSource> added;
  std::vector<std::string> removed;
  std::vector<SourceStatus> sources;
};

TEST(ControlCommandsTest, GivenAdd_WhenAnswered_ThenTheSourceIsReadByTheSchema) {
  Target target;
  EXPECT_EQ(answer_control(R"({"command":"add","source":{"name":"yard","uri":"rtsp://camera/2"}})",
                           target),
            "{\"ok\":true}");
  ASSERT_EQ(target.added.size(), 1u);
  EXPECT_EQ(target.added[0].name, "yard");
  EXPECT_EQ(target.added[0].kind, PipelineSourceKind::kRtsp);
  EXPECT_TRUE(target.added[0].reconnect);
}

TEST(ControlCommandsTest, GivenALimitThatIsUsedUp_WhenAnswered_ThenItIsToldFromAMistake) {
  Target target;
  target.answer = std::unexpected(Error(ErrorKind::kExhausted, "there are 128 sources"));
  EXPECT_EQ(answer_control(R"({"command":"add","source":{"name":"a","file":"a.mp4"}})", target),
            R"({"ok":false,"kind":"exhausted","error":"there are 128 sources"})");
}

TEST(ControlCommandsTest, GivenWrongLines_WhenAnswered_ThenAnErrorSaysWhyAndNothingIsDone) {
  Target target;
  const std::vector<std::pair<std::string, std::string>> lines{
      {"", "is not JSON"},
      {"[]", "must be a map"},
      {"{}", "command: is missing"},
      {R"({"command":"stop"})", "command: must be add, remove, list or stats, is 'stop'"},
      {R"({"command":"add"})", "source: is missing"},
      {R"({"command":"add","source":{"name":"../x","file":"a"}})", "source.name: must be 1 to 64"},
      {R"({"command":"add","source":{"name":"x"}})", "source: needs one of file"},
      {R"({"command":"remove"})", "name: is missing"},
      {R"({"command":"remove","name":7})", ""},
      {R"({"command":"list","all":true})", "all: there is no such key"}};
  for (const auto& [line, why] : lines) {
    if (why.empty()) continue;
    const std::string answer = answer_control(line, target);
    EXPECT_EQ(answer.find("{\"ok\":false,\"error\":\""), 0u) << answer;
    EXPECT_NE(answer.find(why), std::string::npos) << answer;
  }
  EXPECT_TRUE(target.added.empty());
  EXPECT_TRUE(target.removed.empty());
}

TEST(ControlCommandsTest, GivenARefusal_WhenAnswered_ThenItsMessageComesBack) {
  Target target;
  target.answer = fail(ErrorKind::kNotFound, "there is no source 'x'");
  EXPECT_EQ(answer_control(R"({"command":"remove","name":"x"})", target),
            R"({"ok":false,"error":"there is no source 'x'"})");
  EXPECT_EQ(target.removed, (std::vector<std::string>{"x"}));
}

TEST(ControlCommandsTest, GivenSources_WhenListed_ThenEachHasItsState) {
  Target target;
  EXPECT_EQ(answer_control(R"({"command":"list"})", target), R"({"ok":true,"sources":[]})");
  SourceStatus door;
  door.name = "door";
  door.address = "rtsp://user:***@camera/1";
  door.state = SourceState::kStalled;
  door.frames = 3;
  door.labels["a \"b\""] = 2;
  door.places["mat"].entered = 1;
  door.error = Error(ErrorKind::kDeadline, "silent");
  target.sources.push_back(door);
  EXPECT_EQ(answer_control(R"({"command":"list"})", target),
            R"({"ok":true,"sources":[{"name":"door","address":"rtsp://user:***@camera/1",)"
            R"("state":"stalled"}]})");
  EXPECT_EQ(answer_control(R"({"command":"stats"})", target),
            R"({"ok":true,"sources":[{"name":"door","address":"rtsp://user:***@camera/1",)"
            R"("state":"stalled","sessions":0,"frames":3,"frames_per_second":0,"objects":0,)"
            R"("latency_p50_ms":0,"latency_p95_ms":0,"error":"silent","labels":{"a \"b\"":2},)"
            R"("places":{"mat":{"entered":1,"left":0,"forwards":0,"backwards":0}}}]})");
}

}  // namespace
}  // namespace penstock
