// SPDX-License-Identifier: Apache-2.0
//
// The elements of the two queues of a burst: 24 bytes, a discriminator and a union, as Android's
// FmqRequestDatum and FmqResultDatum lie in memory. A packet is a sequence of them. Booleans and
// enumerations are integers here: any bits may come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "penstock/burst/message_queue.h"

namespace penstock {

/// As many datums as either queue of a burst holds, and so the longest packet.
inline constexpr std::size_t kBurstChannelLength = 1024;

struct FmqRequestDatum {
  enum Kind : std::uint8_t {
    kPacketInformation = 0,
    kInputOperandInformation = 1,
    kInputOperandDimensionValue = 2,
    kOutputOperandInformation = 3,
    kOutputOperandDimensionValue = 4,
    kPoolIdentifier = 5,
    kMeasureTiming = 6,
  };
  struct PacketInformation {
    std::uint32_t packet_size;
    std::uint32_t number_of_input_operands;
    std::uint32_t number_of_output_operands;
    std::uint32_t number_of_pools;
  };
  struct OperandInformation {
    std::uint8_t has_no_value;
    std::array<std::uint8_t, 3> padding;
    std::uint32_t pool_index;
    std::uint32_t offset;
    std::uint32_t length;
    std::uint32_t number_of_dimensions;
  };

  std::uint8_t kind;
  std::array<std::uint8_t, 3> padding;
  union {
    std::array<std::uint8_t, 20> bytes;  // First, so that {} makes all of them zero.
    PacketInformation packet_information;
    OperandInformation operand_information;
    std::uint32_t dimension_value;
    std::int32_t pool_identifier;
    std::int32_t measure_timing;
  };
};

struct FmqResultDatum {
  enum Kind : std::uint8_t {
    kPacketInformation = 0,
    kOperandInformation = 1,
    kOperandDimensionValue = 2,
    kExecutionTiming = 3,
  };
  struct PacketInformation {
    std::uint32_t packet_size;
    std::int32_t error_status;
    std::uint32_t number_of_operands;
  };
  struct OperandInformation {
    std::uint8_t is_sufficient;
    std::array<std::uint8_t, 3> padding;
    std::uint32_t number_of_dimensions;
  };
  struct ExecutionTiming {
    std::uint64_t time_on_device;
    std::uint64_t time_in_driver;
  };

  std::uint8_t kind;
  std::array<std::uint8_t, 7> padding;
  union {
    std::array<std::uint8_t, 16> bytes;
    PacketInformation packet_information;
    OperandInformation operand_information;
    std::uint32_t dimension_value;
    ExecutionTiming execution_timing;
  };
};

// Both unions begin with all of their bytes, and every gap has a name.
template <>
inline constexpr bool kHasNoPadding<FmqRequestDatum> = true;
template <>
inline constexpr bool kHasNoPadding<FmqResultDatum> = true;

static_assert(sizeof(FmqRequestDatum) == 24 && alignof(FmqRequestDatum) == 4);
static_assert(offsetof(FmqRequestDatum, packet_information) == 4 &&
              offsetof(FmqRequestDatum, operand_information) == 4 &&
              offsetof(FmqRequestDatum, dimension_value) == 4 &&
              offsetof(FmqRequestDatum, pool_identifier) == 4 &&
              offsetof(FmqRequestDatum, measure_timing) == 4);
static_assert(sizeof(FmqRequestDatum::PacketInformation) == 16 &&
              offsetof(FmqRequestDatum::PacketInformation, number_of_pools) == 12);
static_assert(sizeof(FmqRequestDatum::OperandInformation) == 20 &&
              offsetof(FmqRequestDatum::OperandInformation, pool_index) == 4 &&
              offsetof(FmqRequestDatum::OperandInformation, offset) == 8 &&
              offsetof(FmqRequestDatum::OperandInformation, length) == 12 &&
              offsetof(FmqRequestDatum::OperandInformation, number_of_dimensions) == 16);
static_assert(sizeof(FmqResultDatum) == 24 && alignof(FmqResultDatum) == 8);
static_assert(offsetof(FmqResultDatum, packet_information) == 8 &&
              offsetof(FmqResultDatum, operand_information) == 8 &&
              offsetof(FmqResultDatum, dimension_value) == 8 &&
              offsetof(FmqResultDatum, execution_timing) == 8);
static_assert(sizeof(FmqResultDatum::PacketInformation) == 12 &&
              offsetof(FmqResultDatum::PacketInformation, error_status) == 4 &&
              offsetof(FmqResultDatum::PacketInformation, number_of_operands) == 8);
static_assert(sizeof(FmqResultDatum::OperandInformation) == 8 &&
              offsetof(FmqResultDatum::OperandInformation, number_of_dimensions) == 4);
static_assert(sizeof(FmqResultDatum::ExecutionTiming) == 16);
static_assert(std::is_trivially_copyable_v<FmqRequestDatum> &&
              std::is_standard_layout_v<FmqRequestDatum> &&
              std::is_trivially_copyable_v<FmqResultDatum> &&
              std::is_standard_layout_v<FmqResultDatum>);

}  // namespace penstock
