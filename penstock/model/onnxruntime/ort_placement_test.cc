// SPDX-License-Identifier: Apache-2.0
//
// Contract M05: which nodes are on the CPU is read from ONNX Runtime's log as it writes it, and
// whatever else stands there is an error. The lines are those of ONNX Runtime 1.23 to 1.29.
#include "penstock/model/onnxruntime/ort_placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/model/manifest.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr const char* kWriter = "/src/session_state.cc:1345 VerifyEachNodeIsAssignedToAnEp";
constexpr const char* kProvider = "GpuExecutionProvider";

/// "" when the placement is accepted.
std::string checked(OrtPlacement& placement, const std::vector<std::string>& cpu_nodes) {
  const auto done = placement.check(kProvider, cpu_nodes);
  if (done) return "";
  EXPECT_EQ(done.error().kind(), ErrorKind::kUnsupported);
  return done.error().message();
}

std::string checked(std::initializer_list<const char*> lines,
                    const std::vector<std::string>& cpu_nodes = {}) {
  OrtPlacement placement;
  for (const char* line : lines) placement.read(kWriter, line);
  return checked(placement, cpu_nodes);
}

TEST(M05, GivenAllNodesOnTheProvider_WhenChecked_ThenThatIsRight) {
  EXPECT_EQ(checked({"Node placements",
                     " All nodes placed on [GpuExecutionProvider]. Number of nodes: 52"}),
            "");
  EXPECT_EQ(
      checked({"Node placements", " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1",
               "  GpuExecutionProvider_56004993_1"}),
      "");
}

TEST(M05, GivenNodesOnTheCpu_WhenChecked_ThenOnlyThoseThatAreAllowedByNameMayBe) {
  const std::initializer_list<const char*> lines{
      "Node placements",       " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 3",
      "  Gather (shape/take)", "  Shape (a (b) c)",
      "  If (branch)",         " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 2",
      "  Conv (c1)",           "  Conv (c2)"};
  EXPECT_EQ(checked(lines, {"branch", "shape/take", "a (b) c", "not there"}), "");
  const std::string two = checked(lines, {"branch"});
  EXPECT_THAT(two, HasSubstr("engine.cpu_nodes does not allow: 'shape/take', 'a (b) c'"));
  EXPECT_THAT(checked(lines), HasSubstr("'branch'"));
  // A part of a name, or the operator's type, is no name.
  EXPECT_THAT(checked(lines, {"branch", "take", "a (b) c", "Gather"}), HasSubstr("'shape/take'"));
}

TEST(M05, GivenNodesThatCanNotBeNamed_WhenChecked_ThenTheyAreNeverAllowed) {
  EXPECT_THAT(
      checked({"Node placements", " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1",
               "  Conv (c1)", " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1",
               "  Add ()"},
              {"Add", "c1"}),
      HasSubstr("Add without a name"));
}

TEST(M05, GivenManyNodesOnTheCpu_WhenChecked_ThenTheErrorNamesTheFirstAndStaysShort) {
  OrtPlacement placement;
  placement.read(kWriter, "Node placements");
  placement.read(kWriter, " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1");
  placement.read(kWriter, "  Conv (c)");
  placement.read(kWriter, " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 100");
  for (int i = 0; i < 100; ++i) placement.read(kWriter, str_format("  Add (\n{})", i));
  const std::string message = checked(placement, {});
  EXPECT_THAT(message, HasSubstr(R"('\x0a0', '\x0a1')"));
  EXPECT_THAT(message, HasSubstr("and 92 more"));
  EXPECT_LT(message.size(), 400u);
  OrtPlacement huge;
  huge.read(kWriter, "Node placements");
  huge.read(kWriter, " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1");
  huge.read(kWriter, "  Conv (c)");
  const std::size_t count = kMaxCpuNodes + 1000;
  huge.read(kWriter,
            str_format(" Node(s) placed on [CPUExecutionProvider]. Number of nodes: {}", count));
  for (std::size_t i = 0; i < count; ++i) huge.read(kWriter, "  Add (same)");
  EXPECT_THAT(checked(huge, {"same"}), HasSubstr(str_format("{} nodes", count)));
}

TEST(M05, GivenNoNodeOnTheProvider_WhenChecked_ThenThatIsAnErrorWhateverIsAllowed) {
  const std::string all = checked(
      {"Node placements", " All nodes placed on [CPUExecutionProvider]. Number of nodes: 7"},
      {"a"});
  EXPECT_THAT(all, HasSubstr("GpuExecutionProvider takes none of the model's 7 nodes"));
  EXPECT_THAT(
      checked({"Node placements", " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1",
               "  Add (a)"},
              {"a"}),
      HasSubstr("takes none of the model's 1 nodes"));
}

TEST(M05, GivenAProviderThatNobodyChose_WhenChecked_ThenItIsNamed) {
  EXPECT_THAT(
      checked({"Node placements", " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1",
               "  Conv (c)", " Node(s) placed on [NpuExecutionProvider]. Number of nodes: 1",
               "  Conv (d)"}),
      HasSubstr("1 nodes are placed on NpuExecutionProvider, which was not chosen"));
}

TEST(M05, GivenALogThatIsNotAsExpected_WhenChecked_ThenThePlacementIsNotAssumed) {
  const auto unreadable = [](std::initializer_list<const char*> lines, const char* part) {
    const std::string message = checked(lines, {"a"});
    EXPECT_THAT(message, HasSubstr("cannot tell which nodes are left on the CPU"));
    EXPECT_THAT(message, HasSubstr(part));
  };
  const char* const start = "Node placements";
  const char* const gpu = " Node(s) placed on [GpuExecutionProvider]. Number of nodes: 1";
  const char* const all = " All nodes placed on [GpuExecutionProvider]. Number of nodes: 1";
  const char* const cpu = " Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1";
  unreadable({}, "writes no list");
  unreadable({start}, "writes no list");
  unreadable({"Node placement"}, "has 'Node placement'");
  unreadable({start, "Nodes on GpuExecutionProvider: 1"}, "has 'Nodes on");
  unreadable({start, " All nodes placed on [GpuExecutionProvider]"}, "has ' All nodes");
  unreadable({start, " All nodes placed on [GpuExecutionProvider]. Number of nodes: x"},
             "nodes: x");
  unreadable({start, " All nodes placed on [GpuExecutionProvider]. Number of nodes: -1"}, "-1");
  unreadable({start, gpu}, "ends 1 nodes too early");
  unreadable({start, gpu, cpu}, "has ' Node(s) placed");
  unreadable({start, gpu, "  Conv (c)", "  Conv (d)"}, "has '  Conv (d)'");
  unreadable({start, gpu, "  Conv (c)", gpu, "  Conv (d)"}, "has ' Node(s)");
  unreadable({start, gpu, "  Conv (c)", all}, "has ' All nodes");
  unreadable({start, all, cpu, "  Add (a)"}, "has ' Node(s)");
  unreadable({start, all, start}, "has 'Node placements'");
  unreadable({start, gpu, "  Conv (c)", cpu, "  Add a"}, "has '  Add a'");
  unreadable({start, gpu, "  Conv (c)", cpu, "  Add (a"}, "has '  Add (a'");
  unreadable({start, gpu, "  Conv (c)", cpu, " Add (a)"}, "has ' Add (a)'");
}

TEST(M05, GivenOtherMessages_WhenRead_ThenOnlyThePlacementsOwnCount) {
  OrtPlacement placement;
  // A node's name could be anything, also in other messages.
  placement.read("graph.cc:1 Resolve", "Node placements");
  placement.read(kWriter, "Node placements");
  placement.read("graph.cc:1 Resolve",
                 " All nodes placed on [GpuExecutionProvider]. Number of nodes: 1");
  placement.read(kWriter, " All nodes placed on [CPUExecutionProvider]. Number of nodes: 1");
  EXPECT_THAT(checked(placement, {}), HasSubstr("takes none"));
  // What a session says once it has been checked is not looked at.
  OrtPlacement done;
  done.read(kWriter, "Node placements");
  done.read(kWriter, " All nodes placed on [GpuExecutionProvider]. Number of nodes: 1");
  EXPECT_EQ(checked(done, {}), "");
  done.read(kWriter, "Node placements");
  EXPECT_EQ(checked(done, {}), "");
}

}  // namespace
}  // namespace penstock
