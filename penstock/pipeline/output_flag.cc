// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/output_flag.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

// Players and servers go by the name, so an MP4 under one of these is taken for what it is not.
constexpr std::array<std::string_view, 16> kOtherContainers{
    ".3gp", ".avi", ".flv", ".gif", ".m2ts", ".mkv", ".mov",  ".mpeg",
    ".mpg", ".mts", ".mxf", ".ogg", ".ogv",  ".ts",  ".webm", ".wmv"};

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorKind::kInvalidArgument, std::move(why));
}

Result<void> check_video_name(std::string_view text, const std::filesystem::path& path) {
  if (path == "-") {
    return refuse(str_format(
        "--out {}: an MP4 is not written from its start to its end, so not to stdout; give a file",
        text));
  }
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (!std::ranges::contains(kOtherContainers, extension)) return {};
  return refuse(
      str_format("--out {}: the video is an MP4, and '{}' says another container; name it .mp4",
                 text, extension));
}

}  // namespace

Result<void> take_output(std::string_view text, RunOptions& options) {
  const std::size_t at = text.find('=');
  const std::string_view kind = text.substr(0, at);
  const std::string_view path = at == text.npos ? "" : text.substr(at + 1);
  std::filesystem::path* place = kind == "video"    ? &options.video
                                 : kind == "json"   ? &options.json
                                 : kind == "report" ? &options.report
                                                    : nullptr;
  if (place == nullptr || path.empty()) {
    return refuse(
        str_format("--out {}: say video=FILE.mp4, json=FILE.jsonl or report=FILE.html", text));
  }
  for (const std::string_view next : {",video=", ",json=", ",report="}) {
    if (path.contains(next)) {
      return refuse(str_format("--out {}: one output a flag; for '{}' give --out again", text,
                               next.substr(1)));
    }
  }
  if (!place->empty()) return refuse(str_format("--out {}=... is given twice", kind));
  if (kind == "video") PENSTOCK_TRY(check_video_name(text, path));
  *place = path == "-" ? "/dev/stdout" : path;
  return {};
}

}  // namespace penstock
