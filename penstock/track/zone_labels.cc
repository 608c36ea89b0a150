// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zone_labels.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>
#include <vector>

#include "penstock/base/str_format.h"
#include "penstock/track/zone_text.h"

namespace penstock {
namespace {

constexpr std::size_t kShown = 10;
/// Longer labels are not compared: nobody misspells by so little.
constexpr std::size_t kMostCompared = 64;

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Letters to add, leave out or change; upper and lower case are the same.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Null when none is near: more than a third of it would have to change.
const std::string* nearest(std::string_view wanted, std::span<const std::string> labels) {
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  if (wanted.size() > kMostCompared) return nullptr;
  for (const std::string& label : labels) {
    if (label.size() > kMostCompared) continue;
    if (const std::size_t away = distance(wanted, label); away < least) {
      least = away;
      best = &label;
    }
  }
  return best;
}

std::string instead_of(std::string_view wanted, std::span<const std::string> labels) {
  if (const std::string* label = nearest(wanted, labels)) {
    return str_format("did you mean '{}'?", *label);
  }
  std::string text = "there are ";
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + labels[i];
  }
  return labels.size() > kShown ? text + ", ..." : text;
}

template <typename Places>
Result<void> check(const Places& places, std::string_view kind,
                   std::span<const std::string> labels) {
  for (const auto& place : places) {
    for (const std::string& label : place.labels) {
      if (std::ranges::contains(labels, label)) continue;
      return fail(ErrorKind::kInvalidArgument,
                  str_format("{} '{}': no model here finds '{}'; {}", kind, place.name, label,
                             instead_of(label, labels)));
    }
  }
  return {};
}

}  // namespace

Result<void> check_place_labels(std::string_view zones, std::string_view lines,
                                std::span<const std::string> labels) {
  auto read_zones = parse_zones(zones);
  if (!read_zones) return std::unexpected(std::move(read_zones).error());
  auto read_lines = parse_lines(lines);
  if (!read_lines) return std::unexpected(std::move(read_lines).error());
  if (labels.empty()) return {};
  PENSTOCK_TRY(check(*read_zones, "zone", labels));
  return check(*read_lines, "line", labels);
}

}  // namespace penstock
