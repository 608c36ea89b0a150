// SPDX-License-Identifier: Apache-2.0
#include "penstock/observe/copy_ledger.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

TEST(CopyLedger, GivenRecords_WhenRead_ThenTheyAreSummedByClassAndSite) {
  CopyLedger ledger;
  ledger.record(CopyClass::kReadback, "memory/detections", 7204);
  ledger.record(CopyClass::kTensor, "memory/copy", 100, 3);
  ledger.record(CopyClass::kReadback, "memory/detections", 28);
  ledger.record(CopyClass::kTensor, "exec/assemble", 5);
  const auto rows = ledger.rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].copy_class, CopyClass::kTensor);
  EXPECT_EQ(rows[0].site, "exec/assemble");
  EXPECT_EQ(rows[1].site, "memory/copy");
  EXPECT_EQ(rows[1].count, 3u);
  EXPECT_EQ(rows[1].bytes, 100u);
  EXPECT_EQ(rows[2].copy_class, CopyClass::kReadback);
  EXPECT_EQ(rows[2].count, 2u);
  EXPECT_EQ(rows[2].bytes, 7232u);
  EXPECT_EQ(ledger.count(CopyClass::kTensor), 4u);
  EXPECT_EQ(ledger.bytes(CopyClass::kTensor), 105u);
  EXPECT_EQ(ledger.count(CopyClass::kFrame), 0u);
  EXPECT_EQ(ledger.bytes(CopyClass::kFrame), 0u);
}

TEST(CopyLedger, GivenMoreSitesThanItKeeps_WhenRecorded_ThenTheRestCountAsOther) {
  CopyLedger ledger;
  for (std::size_t i = 0; i < CopyLedger::kMaxSites; ++i) {
    ledger.record(CopyClass::kSweep, str_format("site-{:03}", i), 1);
  }
  ledger.record(CopyClass::kSweep, "late-a", 10);
  ledger.record(CopyClass::kSweep, "late-b", 20);
  ledger.record(CopyClass::kFrame, "late-c", 40);
  ledger.record(CopyClass::kSweep, "site-000", 1);
  EXPECT_EQ(ledger.rows().size(), CopyLedger::kMaxSites + 2);
  EXPECT_EQ(ledger.count(CopyClass::kSweep), CopyLedger::kMaxSites + 3);
  EXPECT_EQ(ledger.bytes(CopyClass::kSweep), CopyLedger::kMaxSites + 31);
  EXPECT_EQ(ledger.bytes(CopyClass::kFrame), 40u);
  EXPECT_EQ(ledger.rows().back().site, "other");
}

TEST(CopyLedger, GivenSeveralThreads_WhenRecording_ThenNothingIsLost) {
  CopyLedger ledger;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger, t] {
      for (int i = 0; i < 1000; ++i) ledger.record(CopyClass::kUpload, str_format("{}", t), 2);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ledger.count(CopyClass::kUpload), 4000u);
  EXPECT_EQ(ledger.bytes(CopyClass::kUpload), 8000u);
}

TEST(CopyLedger, GivenEveryClass_WhenNamed_ThenNamesAreDistinct) {
  std::set<std::string_view> names;
  for (int i = 0; i < kCopyClassCount; ++i) names.insert(to_string(static_cast<CopyClass>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kCopyClassCount));
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace penstock
