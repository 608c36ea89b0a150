// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <span>

#include "penstock/base/file_ops.h"
#include "penstock/base/str_format.h"
#include "penstock/base/usable_cores.h"

namespace penstock::bench {
namespace {

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c < 0x20) {
      out += str_format("\\u{:04x}", int(c));
    } else {
      out += char(c);
    }
  }
  return out + "\"";
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string BenchReport::to_json() const {
  utsname system{};
  ::uname(&system);
  std::string out = str_format(
      "{{\"machine\":{{\"processor\":{},\"cores\":{},\"kernel\":{},\"arch\":{}}},",
      json_text(processor()), usable_cores(), json_text(system.release), json_text(system.machine));
  if (run_) {
    out += str_format(
        "\"run\":{{\"pairs\":{},\"frames\":{},\"engine\":{},\"peer_engine\":{},\"trial\":{}}},",
        run_->pairs, run_->frames, json_text(run_->engine), json_text(run_->peer_engine),
        run_->is_trial());
  }
  out += "\"rows\":[";
  for (const BenchRow& row : rows_) {
    if (&row != rows_.data()) out += ',';
    out += str_format(
        "\n{{\"case\":{},\"unit\":{},\"better\":\"{}\",\"ours\":{:.4f},\"peer_name\":{},"
        "\"peer\":{:.4f},\"ratio\":{:.4f},\"bar\":{:.4f},\"ok\":{}}}",
        json_text(row.name), json_text(row.unit), row.higher_is_better ? "higher" : "lower",
        row.ours, json_text(row.peer_name), row.peer, row.ratio, row.bar,
        is_trial() ? "null"
        : row.ok() ? "true"
                   : "false");
  }
  return out + "\n]}\n";
}

std::string BenchReport::to_table() const {
  std::size_t width = 4;
  for (const BenchRow& row : rows_) width = std::max(width, row.name.size());
  std::string out = str_format("{:<{}} {:<14} {:>10} {:>10} {:>7} {:>6}  {}\n", "case", width,
                               "unit", "ours", "peer", "ratio", "bar", "peer");
  for (const BenchRow& row : rows_) {
    const std::string bar = row.bar > 0 ? str_format("{:.2f}", row.bar) : "-";
    out += str_format("{:<{}} {:<14} {:>10.3f} {:>10.3f} {:>7.3f} {:>6}  {}{}\n", row.name, width,
                      row.unit, row.ours, row.peer, row.ratio, bar, row.peer_name,
                      is_trial() || row.ok() ? "" : "   BELOW THE BAR");
  }
  if (!run_) return out;
  out += str_format("{} pairs of {} frames on {} usable cores; ONNX Runtime: ours {}, peer {}\n",
                    run_->pairs, run_->frames, usable_cores(), run_->engine, run_->peer_engine);
  if (is_trial()) {
    out += str_format("a trial, whose bars do not count: that takes {} pairs of {} frames\n",
                      BenchRun::kLeastPairs, BenchRun::kLeastFrames);
  }
  return out;
}

bool BenchReport::finish(const std::filesystem::path& json) const {
  std::fputs(to_table().c_str(), stdout);
  std::error_code ec;
  if (json.has_parent_path()) std::filesystem::create_directories(json.parent_path(), ec);
  const std::string text = to_json();
  auto fd = FileOps::system().create(json);
  auto written = fd ? FileOps::system().write_all(fd->get(), std::as_bytes(std::span(text)))
                    : Result<void>(std::unexpected(fd.error()));
  if (!written) {
    std::fprintf(stderr, "bench %s: %s\n", name_.c_str(), written.error().message().c_str());
    return false;
  }
  std::printf("written to %s\n", json.c_str());
  return is_trial() || std::ranges::all_of(rows_, &BenchRow::ok);
}

}  // namespace penstock::bench
