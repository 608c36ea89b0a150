// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/model_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "penstock/base/str_format.h"
#include "penstock/model/testing/session_support.h"

namespace penstock {
namespace {

using namespace model_testing;  // NOLINT: the suite's own vocabulary
using testing::HasSubstr;

class ModelComparison : public testing::Test {
 protected:
  void write(const std::string& name, int rows, const std::vector<float>& values) {
    std::string header =
        str_format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}\n", rows);
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += {char(header.size()), 0};
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    folder_.write(name, bytes);
  }
  Result<std::vector<OutputDifference>> compare() {
    return compare_with_reference(manifest_, folder_.path());
  }

  TemporaryFolder folder_;
  Manifest manifest_ =
      bare_manifest(folder_, add_model(), {rows_of_two("a"), rows_of_two("b")}, {rows_of_two("y")});
};

TEST_F(ModelComparison, GivenAReference_WhenCompared_ThenTheLargestDifferenceIsTold) {
  write("in.a.npy", 2, {1, 2, 3, 4});
  write("in.b.npy", 2, {10, 20, 30, 40});
  write("out.y.npy", 2, {11, 22.25f, 33, 44});
  const auto differences = compare();
  ASSERT_TRUE(differences) << differences.error().message();
  ASSERT_EQ(differences->size(), 1u);
  EXPECT_EQ(differences->front().output, "y");
  EXPECT_EQ(differences->front().largest, 0.25);
  EXPECT_EQ(differences->front().scale, 44);
}

TEST_F(ModelComparison, GivenANaN_WhenCompared_ThenTheDifferenceIsInfinite) {
  write("in.a.npy", 1, {1, 2});
  write("in.b.npy", 1, {1, 2});
  write("out.y.npy", 1, {2, std::nanf("")});
  const auto differences = compare();
  ASSERT_TRUE(differences) << differences.error().message();
  EXPECT_TRUE(std::isinf(differences->front().largest));
}

TEST_F(ModelComparison, GivenAReferenceOfAnotherShapeOrNone_WhenCompared_ThenItIsNamed) {
  write("in.a.npy", 1, {1, 2});
  write("in.b.npy", 1, {1, 2});
  EXPECT_THAT(compare().error().message(), HasSubstr("out.y.npy"));
  write("out.y.npy", 2, {1, 2, 3, 4});
  EXPECT_EQ(compare().error().kind(), ErrorKind::kCorrupt);
}

}  // namespace
}  // namespace penstock
