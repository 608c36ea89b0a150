// SPDX-License-Identifier: Apache-2.0
#include "penstock/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sysexits.h>

#include <set>
#include <string>

#include "penstock/base/exit_code.h"

namespace penstock {
namespace {

constexpr ErrorKind kAllKinds[] = {
    ErrorKind::kInvalidArgument, ErrorKind::kNotFound,    ErrorKind::kPermission,
    ErrorKind::kCorrupt,         ErrorKind::kUnsupported, ErrorKind::kExhausted,
    ErrorKind::kCancelled,       ErrorKind::kDeadline,    ErrorKind::kIo,
    ErrorKind::kDevice,          ErrorKind::kInternal,
};

TEST(Error, GivenContexts_WhenRead_ThenOutermostComesFirst) {
  Error error(ErrorKind::kNotFound, "no file 'a'");
  error.context("reading manifest").context("preparing model 'm'");
  EXPECT_EQ(error.message(), "preparing model 'm': reading manifest: no file 'a'");
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
}

TEST(Error, GivenConstError_WhenContextIsAdded_ThenTheOriginalIsUnchanged) {
  const Error error(ErrorKind::kIo, "short read");
  EXPECT_EQ(error.context("loading").message(), "loading: short read");
  EXPECT_EQ(error.message(), "short read");
}

TEST(Error, GivenEveryKind_WhenNamed_ThenNamesAreDistinct) {
  std::set<std::string_view> names;
  for (const ErrorKind kind : kAllKinds) names.insert(to_string(kind));
  EXPECT_EQ(names.size(), std::size(kAllKinds));
  EXPECT_FALSE(names.contains("unknown"));
  EXPECT_EQ(to_string(ErrorKind::kNotFound), "not-found");
}

Result<int> add_one_if(Result<int> value, bool& went_on) {
  PENSTOCK_TRY(value);
  went_on = true;
  return *value + 1;
}

TEST(Error, GivenTry_WhenTheExpressionFailed_ThenItsErrorIsReturned) {
  bool went_on = false;
  const Result<int> result = add_one_if(fail(ErrorKind::kDeadline, "late"), went_on);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::kDeadline);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(add_one_if(1, went_on).value(), 2);
}

TEST(ExitCode, GivenEveryKind_WhenMapped_ThenTheCodeIsThatOfSysexits) {
  EXPECT_EQ(exit_code(ErrorKind::kInvalidArgument), EX_USAGE);
  EXPECT_EQ(exit_code(ErrorKind::kCorrupt), EX_DATAERR);
  EXPECT_EQ(exit_code(ErrorKind::kNotFound), EX_NOINPUT);
  EXPECT_EQ(exit_code(ErrorKind::kUnsupported), EX_UNAVAILABLE);
  EXPECT_EQ(exit_code(ErrorKind::kDevice), EX_UNAVAILABLE);
  EXPECT_EQ(exit_code(ErrorKind::kCancelled), EX_UNAVAILABLE);
  EXPECT_EQ(exit_code(ErrorKind::kDeadline), EX_UNAVAILABLE);
  EXPECT_EQ(exit_code(ErrorKind::kInternal), EX_SOFTWARE);
  EXPECT_EQ(exit_code(ErrorKind::kExhausted), EX_OSERR);
  EXPECT_EQ(exit_code(ErrorKind::kIo), EX_IOERR);
  EXPECT_EQ(exit_code(ErrorKind::kPermission), EX_NOPERM);
  EXPECT_EQ(kExitOk, EX_OK);
  EXPECT_EQ(kExitCannotCreate, EX_CANTCREAT);
  EXPECT_EQ(kExitConfig, EX_CONFIG);
}

}  // namespace
}  // namespace penstock
