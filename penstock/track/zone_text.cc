// SPDX-License-Identifier: Apache-2.0
#include "penstock/track/zone_text.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

constexpr std::string_view kSpace = " \t\n";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

/// What comes before `mark`, which is taken off `rest` with it; all of it when there is none.
std::string_view next_part(std::string_view& rest, std::string_view marks) {
  const auto at = rest.find_first_of(marks);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return trimmed(part);
}

std::optional<float> parse_number(std::string_view text) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

struct Place {
  std::string name;
  std::vector<ZonePoint> corners;
  std::vector<std::string> labels;
};

Result<Place> parse_place(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("'{}' is no place: write NAME: X,Y X,Y ...", text));
  }
  Place place{.name = std::string(trimmed(text.substr(0, colon))), .corners = {}, .labels = {}};
  std::string_view labels = text.substr(colon + 1);
  std::string_view corners = next_part(labels, "@");
  while (!labels.empty()) place.labels.emplace_back(next_part(labels, ","));
  while (!corners.empty()) {
    const std::string_view corner = next_part(corners, kSpace);
    if (corner.empty()) continue;
    std::string_view y_text = corner;
    const auto x = parse_number(next_part(y_text, ","));
    const auto y = parse_number(y_text);
    if (!x || !y) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("place '{}': corner '{}' is not X,Y", place.name, corner));
    }
    place.corners.push_back({*x, *y});
  }
  return place;
}

Result<std::vector<Place>> parse_places(std::string_view text) {
  std::vector<Place> places;
  while (!text.empty()) {
    const std::string_view part = next_part(text, ";");
    if (part.empty()) continue;
    auto place = parse_place(part);
    if (!place) return std::unexpected(std::move(place).error());
    places.push_back(std::move(*place));
  }
  return places;
}

}  // namespace

Result<std::vector<Zone>> parse_zones(std::string_view text) {
  auto places = parse_places(text);
  if (!places) return std::unexpected(std::move(places).error());
  std::vector<Zone> zones;
  for (Place& place : *places) {
    zones.push_back({.name = std::move(place.name),
                     .corners = std::move(place.corners),
                     .labels = std::move(place.labels)});
  }
  return zones;
}

Result<std::vector<CountingLine>> parse_lines(std::string_view text) {
  auto places = parse_places(text);
  if (!places) return std::unexpected(std::move(places).error());
  std::vector<CountingLine> lines;
  for (Place& place : *places) {
    if (place.corners.size() != 2) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("line '{}' has {} ends, not 2", place.name, place.corners.size()));
    }
    lines.push_back({.name = std::move(place.name),
                     .from = place.corners[0],
                     .to = place.corners[1],
                     .labels = std::move(place.labels)});
  }
  return lines;
}

}  // namespace penstock
