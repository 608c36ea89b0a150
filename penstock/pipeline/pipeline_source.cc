// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/pipeline_source.h"

#include <fcntl.h>
#include <glib.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "penstock/base/str_format.h"
#include "penstock/base/unique_fd.h"

namespace penstock {
namespace {

GstElement* make_test(const TestPattern& test) {
  const std::string frames =
      test.frames > 0 ? str_format(" num-buffers={}", test.frames) : std::string();
  // By name: a description that ends in bare caps loses them.
  return gst_parse_bin_from_description(
      str_format("videotestsrc name=source pattern={} is-live={}{} ! capsfilter "
                 "caps=video/x-raw,format=I420,width={},height={},framerate={}/1",
                 test.pattern, test.live, frames, test.width, test.height, test.rate)
          .c_str(),
      TRUE, nullptr);
}

Result<Source> device_source(const PipelineSource& source) {
  std::error_code ec;
  if (!std::filesystem::is_character_file(source.address, ec)) {
    const bool there = std::filesystem::exists(source.address, ec);
    return fail(
        there ? ErrorKind::kUnsupported : ErrorKind::kNotFound,
        str_format("source '{}' {}", source.address, there ? "is no device" : "does not exist"));
  }
  Source made;
  made.kind = SourceKind::kDevice;
  made.text = source.address;
  made.file = source.address;
  return made;
}

}  // namespace

Result<Source> open_source(const PipelineSource& source) {
  switch (source.kind) {
    case PipelineSourceKind::kFile:
    case PipelineSourceKind::kRtsp:
      return parse_source(source.address);
    case PipelineSourceKind::kDevice:
      return device_source(source);
    case PipelineSourceKind::kTest:
      break;
  }
  Source made;
  made.kind = SourceKind::kElement;
  made.text = shown_address(source);
  made.make_element = [test = source.test] { return make_test(test); };
  return made;
}

Result<void> check_source(const PipelineSource& source) {
  // A camera that is not there may come.
  if (source.kind == PipelineSourceKind::kDevice || source.kind == PipelineSourceKind::kTest) {
    return {};
  }
  std::error_code ec;
  if (source.kind == PipelineSourceKind::kFile && std::filesystem::is_fifo(source.address, ec)) {
    return {};
  }
  auto opened = open_source(source);
  if (!opened) return std::unexpected(std::move(opened).error());
  return {};
}

std::filesystem::path file_of(const PipelineSource& source) {
  if (source.kind != PipelineSourceKind::kFile) return {};
  gchar* path = source.address.starts_with("file://")
                    ? g_filename_from_uri(source.address.c_str(), nullptr, nullptr)
                    : nullptr;
  std::filesystem::path file = path != nullptr ? path : source.address;
  g_free(path);
  return file;
}

std::filesystem::path video_path(const PipelineSpec& spec, const PipelineSource& source,
                                 int number) {
  std::string path = spec.video;
  for (std::size_t at = 0; (at = path.find(kSourceMark, at)) != std::string::npos;
       at += source.name.size()) {
    path.replace(at, kSourceMark.size(), source.name);
  }
  if (path.empty() || number == 1) return path;
  const std::filesystem::path whole(path);
  return whole.parent_path() /
         str_format("{}.{}{}", whole.stem().string(), number, whole.extension().string());
}

Result<NumberedVideo> claim_video(const PipelineSpec& spec, const PipelineSource& source,
                                  int number) {
  // More in a row are no videos that earlier runs left.
  constexpr int kMaxTaken = 10'000;
  constexpr std::size_t kMaxTold = 3;
  NumberedVideo video;
  for (int tried = 0; tried < kMaxTaken; ++tried) {
    video.number = number + tried;
    video.path = video_path(spec, source, video.number);
    const UniqueFd fd(::open(video.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (fd.is_valid() || errno != EEXIST) return video;
    if (video.taken.size() < kMaxTold) video.taken.push_back(video.path);
  }
  return fail(ErrorKind::kExhausted,
              str_format("source '{}': '{}' and {} more names for its video are taken", source.name,
                         video_path(spec, source, number).string(), kMaxTaken - 1));
}

}  // namespace penstock
