// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Version 1 with `header`, padded as NumPy pads it, and `values` behind.
std::string npy(std::string header, const std::vector<float>& values, char version = 1) {
  const std::size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY", 6);
  bytes += {version, 0, char(header.size() & 0xff), char(header.size() >> 8)};
  if (version > 1) bytes += {0, 0};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

std::string floats(const std::string& shape) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
}

Result<NpyArray> parse(const std::string& bytes) {
  return parse_npy(std::as_bytes(std::span(bytes)));
}

TEST(Npy, GivenArraysAsNumpyWritesThem_WhenParsed_ThenShapeAndValuesAreRead) {
  for (const char version : {1, 2, 3}) {
    const auto array = parse(npy(floats("(2, 3)"), {1, 2, 3, 4, 5, 6}, version));
    ASSERT_TRUE(array) << array.error().message();
    EXPECT_THAT(array->shape, ElementsAre(2, 3));
    EXPECT_THAT(array->values, ElementsAre(1, 2, 3, 4, 5, 6));
  }
  EXPECT_THAT(parse(npy(floats("(2,)"), {7, 8}))->shape, ElementsAre(2));
  EXPECT_THAT(parse(npy(floats("()"), {9}))->values, ElementsAre(9));
  EXPECT_TRUE(parse(npy(floats("(0, 4)"), {}))->values.empty());
}

TEST(Npy, GivenAnotherTypeOrOrder_WhenParsed_ThenItIsUnsupported) {
  for (const char* header : {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
                             "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }"}) {
    EXPECT_EQ(parse(npy(header, {1})).error().kind(), ErrorKind::kUnsupported) << header;
  }
}

TEST(Npy, GivenAnySuchFileCutOrWithMoreBytes_WhenParsed_ThenItIsRefused) {
  const std::string whole = npy(floats("(2, 3)"), {1, 2, 3, 4, 5, 6});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(parse(whole + "x"));
}

TEST(Npy, GivenShapesThatLie_WhenParsed_ThenTheyAreRefused) {
  for (const char* shape : {"(9223372036854775807, 9223372036854775807)", "(-1, 2)", "(1, 2",
                            "1, 2)", "(99999999999999999999,)", "('a',)", "(1000000,)"}) {
    EXPECT_FALSE(parse(npy(floats(shape), {1, 2}))) << shape;
  }
}

TEST(Npy, GivenNoSuchFile_WhenRead_ThenItIsNotFoundAndNamed) {
  const auto array = read_npy("/no/such/array.npy");
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().kind(), ErrorKind::kNotFound);
  EXPECT_THAT(array.error().message(), HasSubstr("/no/such/array.npy"));
}

}  // namespace
}  // namespace penstock
