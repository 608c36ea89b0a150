// SPDX-License-Identifier: Apache-2.0
//
// What a burst execution takes and gives: the values of NNAPI HAL 1.2, with the statuses of 1.3.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace penstock {

enum class ErrorStatus : std::int32_t {
  kNone = 0,
  kDeviceUnavailable = 1,
  kGeneralFailure = 2,
  kOutputInsufficientSize = 3,
  kInvalidArgument = 4,
  // Of HAL 1.3: a client of 1.2 takes them for a general failure.
  kMissedDeadlineTransient = 5,
  kMissedDeadlinePersistent = 6,
  kResourceExhaustedTransient = 7,
  kResourceExhaustedPersistent = 8,
};

enum class MeasureTiming : std::int32_t { kOff = 0, kOn = 1 };

inline constexpr std::uint64_t kNoTiming = std::numeric_limits<std::uint64_t>::max();

/// Microseconds; kNoTiming where not measured.
struct Timing {
  std::uint64_t time_on_device = kNoTiming;
  std::uint64_t time_in_driver = kNoTiming;
  bool operator==(const Timing&) const = default;
};

struct OutputShape {
  std::vector<std::uint32_t> dimensions;
  bool is_sufficient = false;  ///< The output's memory was large enough.
  bool operator==(const OutputShape&) const = default;
};

/// Bytes of a pool.
struct DataLocation {
  std::uint32_t pool = 0;  ///< Index into BurstRequest::slots.
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  bool operator==(const DataLocation&) const = default;
};

/// An input or output, in the model's order. Without a value it has no location and no dimensions.
struct RequestArgument {
  bool has_no_value = false;
  DataLocation location;
  std::vector<std::uint32_t> dimensions;  ///< Empty: as the model says. 0: unknown.
  bool operator==(const RequestArgument&) const = default;
};

struct BurstRequest {
  std::vector<RequestArgument> inputs;
  std::vector<RequestArgument> outputs;
  std::vector<std::int32_t> slots;  ///< The pools, by the numbers that the client gave them.
  MeasureTiming measure = MeasureTiming::kOff;
  bool operator==(const BurstRequest&) const = default;
};

struct BurstResult {
  ErrorStatus status = ErrorStatus::kGeneralFailure;
  std::vector<OutputShape> shapes;  ///< Only of kNone and kOutputInsufficientSize.
  Timing timing;                    ///< Only of kNone.
  bool operator==(const BurstResult&) const = default;
};

/// Without the shapes and times that its status may not have.
BurstResult sanitised(BurstResult result);
void sanitise(BurstResult& result);

}  // namespace penstock
