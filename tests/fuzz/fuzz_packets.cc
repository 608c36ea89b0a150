// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a request and as a result: parsed or refused with a reason, in memory bounded by
// what came; what was parsed crosses again unchanged.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "penstock/burst/request_packet.h"
#include "penstock/burst/result_packet.h"

namespace penstock {
namespace {

template <typename Datum>
std::vector<Datum> datums_of(const std::uint8_t* data, std::size_t size) {
  std::vector<Datum> datums(size / sizeof(Datum));
  if (!datums.empty()) std::memcpy(datums.data(), data, datums.size() * sizeof(Datum));
  return datums;
}

template <typename Datum, typename Parse>
void try_packet(const std::uint8_t* data, std::size_t size, Parse parse) {
  const auto datums = datums_of<Datum>(data, size);
  const auto parsed = parse(datums);
  if (!parsed) {
    if (message_of(parsed.error()).empty() || parsed.error().datum > datums.size()) std::abort();
    return;
  }
  // What an argument without a value had besides is dropped when it is written: compare from there.
  const auto again = parse(serialise(*parsed));
  if (!again || parse(serialise(*again)) != again) std::abort();
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  if (size > kBurstChannelLength * sizeof(FmqRequestDatum)) return 0;
  try_packet<FmqRequestDatum>(data, size, parse_request);
  try_packet<FmqResultDatum>(data, size, parse_result);
  return 0;
}
