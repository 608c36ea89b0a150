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

Result<OutputShape, PacketError> take_shape(PacketReader<Datum>& reader) {
  const auto datum = reader.take(Datum::kOperandInformation);
  if (!datum) return std::unexpected(datum.error());
  const Datum::OperandInformation& information = (*datum)->operand_information;
  const auto is_sufficient = reader.boolean(information.is_sufficient);
  if (!is_sufficient) return std::unexpected(is_sufficient.error());
  auto dimensions =
      reader.take_dimensions(Datum::kOperandDimensionValue, information.number_of_dimensions);
  if (!dimensions) return std::unexpected(dimensions.error());
  return OutputShape{.dimensions = std::move(*dimensions), .is_sufficient = *is_sufficient};
}

}  // namespace

BurstResult sanitised(BurstResult result) {
  if (result.status != ErrorStatus::kNone) {
    result.timing = {};
    if (result.status != ErrorStatus::kOutputInsufficientSize) result.shapes.clear();
  }
  return result;
}

std::vector<Datum> serialise(const BurstResult& result) {
  const BurstResult clean = sanitised(result);
  std::vector<Datum> datums;
  append(datums, Datum::kPacketInformation);
  for (const OutputShape& shape : clean.shapes) {
    append(datums, Datum::kOperandInformation).operand_information = {
        .is_sufficient = std::uint8_t{shape.is_sufficient},
        .padding = {},
        .number_of_dimensions = static_cast<std::uint32_t>(shape.dimensions.size())};
    for (const std::uint32_t dimension : shape.dimensions) {
      append(datums, Datum::kOperandDimensionValue).dimension_value = dimension;
    }
  }
  append(datums, Datum::kExecutionTiming).execution_timing = {
      .time_on_device = clean.timing.time_on_device, .time_in_driver = clean.timing.time_in_driver};
  datums.front().packet_information = {
      .packet_size = static_cast<std::uint32_t>(datums.size()),
      .error_status = static_cast<std::int32_t>(clean.status),
      .number_of_operands = static_cast<std::uint32_t>(clean.shapes.size())};
  return datums;
}

Result<BurstResult, PacketError> parse_result(std::span<const Datum> datums) {
  PacketReader<Datum> reader(datums);
  const auto first = reader.begin();
  if (!first) return std::unexpected(first.error());
  const Datum::PacketInformation& packet = (*first)->packet_information;
  if (!is_status(packet.error_status)) return reader.failed_at_last(PacketFault::kBadStatus);
  PENSTOCK_TRY(reader.expect(std::uint64_t{packet.number_of_operands} + 1));
  BurstResult result{
      .status = static_cast<ErrorStatus>(packet.error_status), .shapes = {}, .timing = {}};
  result.shapes.reserve(packet.number_of_operands);
  for (std::uint32_t i = 0; i < packet.number_of_operands; ++i) {
    auto shape = take_shape(reader);
    if (!shape) return std::unexpected(shape.error());
    result.shapes.push_back(std::move(*shape));
  }
  const auto timing = reader.take(Datum::kExecutionTiming);
  if (!timing) return std::unexpected(timing.error());
  result.timing = {.time_on_device = (*timing)->execution_timing.time_on_device,
                   .time_in_driver = (*timing)->execution_timing.time_in_driver};
  PENSTOCK_TRY(reader.end());
  return sanitised(std::move(result));
}

}  // namespace penstock
