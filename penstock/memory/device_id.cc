// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/device_id.h"

#include <charconv>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

struct KindName {
  std::string_view name;
  DeviceKind kind;
  bool has_index;
};
constexpr KindName kKinds[] = {
    {"cpu", DeviceKind::kCpu, false},
    {"sim", DeviceKind::kSim, false},
    {"cuda", DeviceKind::kCuda, true},
    {"hip", DeviceKind::kHip, true},
};
constexpr std::size_t kMaxIndexDigits = 3;

}  // namespace

Result<DeviceId> parse_device_id(std::string_view text) {
  const auto refused = [&] {
    return fail(ErrorKind::kInvalidArgument,
                str_format("unknown device '{}': use cpu, cuda[:N] or hip[:N]", text));
  };
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  for (const KindName& known : kKinds) {
    if (name != known.name) continue;
    if (colon == std::string_view::npos) return DeviceId{known.kind, 0};
    const std::string_view digits = text.substr(colon + 1);
    const bool is_canonical = !digits.empty() && digits.size() <= kMaxIndexDigits &&
                              digits.find_first_not_of("0123456789") == std::string_view::npos &&
                              (digits.size() == 1 || digits.front() != '0');
    if (!known.has_index || !is_canonical) return refused();
    int index = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), index);
    return DeviceId{known.kind, index};
  }
  return refused();
}

std::string to_string(DeviceId id) {
  for (const KindName& known : kKinds) {
    if (id.kind != known.kind) continue;
    if (!known.has_index) return std::string(known.name);
    return str_format("{}:{}", known.name, id.index);
  }
  return "unknown";
}

}  // namespace penstock
