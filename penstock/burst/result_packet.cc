// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/result_packet.h"

#include <utility>

#include "penstock/burst/packet_reader.h"

namespace penstock {
namespace {

using Datum = FmqResultDatum;

Datum& append(std::vector<Datum>& datums, Datum::Kind kind) {
  datums.push_back(Datum{});
  datums.back().kind = kind;
  return datums.back();
}

bool is_status(std::int32_t value) {
  return value >= static_cast<std::int32_t>(ErrorStatus::kNone) &&
         value <= static_cast<std::int32_t>(ErrorStatus::kResourceExhaustedPersistent);
}

Result<void, PacketError> take_shape(PacketReader<Datum>& reader, OutputShape& shape) {
  const auto datum = reader.take(Datum::kOperandInformation);
  if (!datum) return std::unexpected(datum.error());
  const Datum::OperandInformation& information = (*datum)->operand_information;
  const auto is_sufficient = reader.boolean(information.is_sufficient);
  if (!is_sufficient) return std::unexpected(is_sufficient.error());
  shape.is_sufficient = *is_sufficient;
  return reader.take_dimensions(Datum::kOperandDimensionValue, information.number_of_dimensions,
                                shape.dimensions);
}

/// What a result of this status may have.
bool may_have_shapes(ErrorStatus status) {
  return status == ErrorStatus::kNone || status == ErrorStatus::kOutputInsufficientSize;
}
bool may_have_timing(ErrorStatus status) { return status == ErrorStatus::kNone; }

}  // namespace

void sanitise(BurstResult& result) {
  if (!may_have_shapes(result.status)) result.shapes.clear();
  if (!may_have_timing(result.status)) result.timing = {};
}

BurstResult sanitised(BurstResult result) {
  sanitise(result);
  return result;
}

void serialise_into(const BurstResult& result, std::vector<Datum>& datums) {
  const auto shapes = may_have_shapes(result.status) ? std::span<const OutputShape>(result.shapes)
                                                     : std::span<const OutputShape>();
  const Timing timing = may_have_timing(result.status) ? result.timing : Timing{};
  datums.clear();
  append(datums, Datum::kPacketInformation);
  for (const OutputShape& shape : shapes) {
    append(datums, Datum::kOperandInformation).operand_information = {
        .is_sufficient = std::uint8_t{shape.is_sufficient},
        .padding = {},
        .number_of_dimensions = static_cast<std::uint32_t>(shape.dimensions.size())};
    for (const std::uint32_t dimension : shape.dimensions) {
      append(datums, Datum::kOperandDimensionValue).dimension_value = dimension;
    }
  }
  append(datums, Datum::kExecutionTiming).execution_timing = {
      .time_on_device = timing.time_on_device, .time_in_driver = timing.time_in_driver};
  datums.front().packet_information = {
      .packet_size = static_cast<std::uint32_t>(datums.size()),
      .error_status = static_cast<std::int32_t>(result.status),
      .number_of_operands = static_cast<std::uint32_t>(shapes.size())};
}

std::vector<Datum> serialise(const BurstResult& result) {
  std::vector<Datum> datums;
  serialise_into(result, datums);
  return datums;
}

Result<void, PacketError> parse_result_into(std::span<const Datum> datums, BurstResult& result) {
  PacketReader<Datum> reader(datums);
  const auto first = reader.begin();
  if (!first) return std::unexpected(first.error());
  const Datum::PacketInformation& packet = (*first)->packet_information;
  if (!is_status(packet.error_status)) return reader.failed_at_last(PacketFault::kBadStatus);
  PENSTOCK_TRY(reader.expect(std::uint64_t{packet.number_of_operands} + 1));
  result.status = static_cast<ErrorStatus>(packet.error_status);
  result.shapes.resize(packet.number_of_operands);
  for (OutputShape& shape : result.shapes) PENSTOCK_TRY(take_shape(reader, shape));
  const auto timing = reader.take(Datum::kExecutionTiming);
  if (!timing) return std::unexpected(timing.error());
  result.timing = {.time_on_device = (*timing)->execution_timing.time_on_device,
                   .time_in_driver = (*timing)->execution_timing.time_in_driver};
  PENSTOCK_TRY(reader.end());
  sanitise(result);
  return {};
}

Result<BurstResult, PacketError> parse_result(std::span<const Datum> datums) {
  BurstResult result;
  PENSTOCK_TRY(parse_result_into(datums, result));
  return result;
}

}  // namespace penstock
