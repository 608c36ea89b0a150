// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/request_packet.h"

#include "penstock/burst/packet_reader.h"

namespace penstock {
namespace {

using Datum = FmqRequestDatum;

struct OperandKinds {
  Datum::Kind information;
  Datum::Kind dimension;
};
constexpr OperandKinds kInputs = {Datum::kInputOperandInformation,
                                  Datum::kInputOperandDimensionValue};
constexpr OperandKinds kOutputs = {Datum::kOutputOperandInformation,
                                   Datum::kOutputOperandDimensionValue};

Datum& append(std::vector<Datum>& datums, Datum::Kind kind) {
  datums.push_back(Datum{});
  datums.back().kind = kind;
  return datums.back();
}

void append_operands(std::vector<Datum>& datums, const std::vector<RequestArgument>& operands,
                     const OperandKinds& kinds) {
  for (const RequestArgument& operand : operands) {
    const bool has_value = !operand.has_no_value;
    const auto dimensions = has_value ? std::span<const std::uint32_t>(operand.dimensions)
                                      : std::span<const std::uint32_t>();
    append(datums, kinds.information).operand_information = {
        .has_no_value = std::uint8_t{operand.has_no_value},
        .padding = {},
        .pool_index = has_value ? operand.location.pool : 0,
        .offset = has_value ? operand.location.offset : 0,
        .length = has_value ? operand.location.length : 0,
        .number_of_dimensions = static_cast<std::uint32_t>(dimensions.size())};
    for (const std::uint32_t dimension : dimensions) {
      append(datums, kinds.dimension).dimension_value = dimension;
    }
  }
}

Result<void, PacketError> take_operands(PacketReader<Datum>& reader, std::uint32_t count,
                                        const OperandKinds& kinds,
                                        std::vector<RequestArgument>& operands) {
  operands.resize(count);
  for (RequestArgument& operand : operands) {
    const auto datum = reader.take(kinds.information);
    if (!datum) return std::unexpected(datum.error());
    const Datum::OperandInformation& information = (*datum)->operand_information;
    const auto has_no_value = reader.boolean(information.has_no_value);
    if (!has_no_value) return std::unexpected(has_no_value.error());
    PENSTOCK_TRY(reader.take_dimensions(kinds.dimension, information.number_of_dimensions,
                                        operand.dimensions));
    operand.has_no_value = *has_no_value;
    operand.location = {
        .pool = information.pool_index, .offset = information.offset, .length = information.length};
  }
  return {};
}

Result<MeasureTiming, PacketError> take_measure(PacketReader<Datum>& reader) {
  const auto datum = reader.take(Datum::kMeasureTiming);
  if (!datum) return std::unexpected(datum.error());
  switch ((*datum)->measure_timing) {
    case static_cast<std::int32_t>(MeasureTiming::kOff):
      return MeasureTiming::kOff;
    case static_cast<std::int32_t>(MeasureTiming::kOn):
      return MeasureTiming::kOn;
    default:
      return reader.failed_at_last(PacketFault::kBadMeasure);
  }
}

}  // namespace

void serialise_into(const BurstRequest& request, std::vector<Datum>& datums) {
  datums.clear();
  append(datums, Datum::kPacketInformation);
  append_operands(datums, request.inputs, kInputs);
  append_operands(datums, request.outputs, kOutputs);
  for (const std::int32_t slot : request.slots) {
    append(datums, Datum::kPoolIdentifier).pool_identifier = slot;
  }
  append(datums, Datum::kMeasureTiming).measure_timing = static_cast<std::int32_t>(request.measure);
  datums.front().packet_information = {
      .packet_size = static_cast<std::uint32_t>(datums.size()),
      .number_of_input_operands = static_cast<std::uint32_t>(request.inputs.size()),
      .number_of_output_operands = static_cast<std::uint32_t>(request.outputs.size()),
      .number_of_pools = static_cast<std::uint32_t>(request.slots.size())};
}

std::vector<Datum> serialise(const BurstRequest& request) {
  std::vector<Datum> datums;
  serialise_into(request, datums);
  return datums;
}

Result<void, PacketError> parse_request_into(std::span<const Datum> datums, BurstRequest& request) {
  PacketReader<Datum> reader(datums);
  const auto first = reader.begin();
  if (!first) return std::unexpected(first.error());
  const Datum::PacketInformation& packet = (*first)->packet_information;
  const std::uint64_t parts = std::uint64_t{packet.number_of_input_operands} +
                              packet.number_of_output_operands + packet.number_of_pools;
  PENSTOCK_TRY(reader.expect(parts + 1));
  PENSTOCK_TRY(take_operands(reader, packet.number_of_input_operands, kInputs, request.inputs));
  PENSTOCK_TRY(take_operands(reader, packet.number_of_output_operands, kOutputs, request.outputs));
  request.slots.resize(packet.number_of_pools);
  for (std::int32_t& slot : request.slots) {
    const auto datum = reader.take(Datum::kPoolIdentifier);
    if (!datum) return std::unexpected(datum.error());
    slot = (*datum)->pool_identifier;
  }
  const auto measure = take_measure(reader);
  if (!measure) return std::unexpected(measure.error());
  request.measure = *measure;
  return reader.end();
}

Result<BurstRequest, PacketError> parse_request(std::span<const Datum> datums) {
  BurstRequest request;
  PENSTOCK_TRY(parse_request_into(datums, request));
  return request;
}

}  // namespace penstock
