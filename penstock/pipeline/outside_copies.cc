// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/outside_copies.h"

#include <algorithm>

#include "penstock/base/str_append.h"
#include "penstock/base/str_format.h"
#include "penstock/pipeline/report_page.h"

namespace penstock {

std::string to_table(const OutsideCopies& outside, std::uint64_t frames) {
  const double all = double(std::max<std::uint64_t>(frames, 1));
  std::string out = "outside that path\n";
  if (outside.upstream_known) {
    str_append(out, "  upstream  {:<24} {:>8} {:>8.2f} a frame\n", outside.decoder,
               outside.upstream, double(outside.upstream) / all);
  } else {
    str_append(out, "  upstream  {:<24} not known\n",
               outside.decoder.empty() ? "decoder" : outside.decoder);
  }
  const auto row = [&](const char* what, std::uint64_t count) {
    if (count == 0) return;
    str_append(out, "  frame     {:<24} {:>8} {:>8.2f} a frame\n", what, count,
               double(count) / all);
  };
  row("draw (video output)", outside.drawn);
  row("report pictures", outside.pictures);
  return out;
}

std::string outside_section(const OutsideCopies& outside, std::uint64_t frames) {
  std::string out =
      "<h2>Copies outside the analytic path</h2><table><tr><th>what<th "
      "class=\"n\">frames<th class=\"n\">a frame</tr>";
  const double all = double(std::max<std::uint64_t>(frames, 1));
  const auto row = [&](const std::string& what, std::uint64_t count) {
    str_append(out, "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{:.2f}</tr>", what, count,
               double(count) / all);
  };
  if (outside.upstream_known) {
    row(str_format("upstream: by the decoder {}", html_escape(outside.decoder)), outside.upstream);
  } else {
    str_append(out, "<tr><td>upstream: by the decoder {}<td class=\"n\">not known<td></tr>",
               html_escape(outside.decoder));
  }
  row("drawing the video output, on BGRA copies", outside.drawn);
  row("report pictures (a copy made outside the analytic path)", outside.pictures);
  return out + "</table>";
}

}  // namespace penstock
