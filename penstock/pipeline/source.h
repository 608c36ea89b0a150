// SPDX-License-Identifier: Apache-2.0
//
// Source: where the frames of a run come from, and the GStreamer elements that decode it.
//
//   auto source = parse_source("street.mp4");           // or rtsp://camera/stream
//   auto bin = make_decoder(*source);                   // "pad-added" hands out decoded video
//
// Only video is decoded. Every libav decoder runs on one thread: its default (one a core) fights
// the inference workers for the same cores and costs more than it brings.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "penstock/base/error.h"
#include "penstock/base/unique_fd.h"
#include "penstock/media/geometry.h"
#include "penstock/pipeline/source_address.h"

namespace penstock {

enum class SourceKind {
  kFile,
  kRtsp,
  kDevice,   ///< A V4L2 camera.
  kElement,  ///< A caller's own element with a "src" pad that gives raw video (tests, benchmarks).
};

struct Source {
  SourceKind kind = SourceKind::kFile;
  std::string text;            ///< What people and files get to see: as given, a password as "***".
  std::string address;         ///< kRtsp: as given. For rtspsrc alone, it may hold a password.
  std::filesystem::path file;  ///< kFile, kDevice.
  UniqueFd pipe;               ///< kFile that can make a reader wait (FIFO, character device).
  std::function<GstElement*()> make_element;  ///< kElement: a floating reference.
};

/// Something that comes and goes.
inline bool is_camera(const Source& source) {
  return source.kind == SourceKind::kRtsp || source.kind == SourceKind::kDevice;
}

/// The application message of a camera that says again and again that it is elsewhere; nothing is
/// sent to it any more.
inline constexpr const char* kSourceRedirects = "penstock-source-redirects";

/// `text` by somebody who knows the source's address (GStreamer) without the password.
std::string without_password_of(const Source& source, std::string text);

/// rtsp:// and rtsps:// are RTSP, file:// and everything else a file, which must exist, be readable
/// and not be empty. Does not wait for a FIFO's writer.
Result<Source> parse_source(std::string_view text);

/// The application message of a FIFO or device that ended before its first byte: no demuxer says
/// so, as none was chosen.
inline constexpr const char* kSourceEmpty = "penstock-source-empty";

/// A floating bin for kFile, kRtsp and kDevice whose "pad-added" gives video pads only; for
/// kElement the caller's element. kUnsupported names a GStreamer element that is not installed.
/// `source` must outlive it.
Result<GstElement*> make_decoder(const Source& source);

/// No frame has more; 8 bytes a pixel in decoder and converter are 2 GiB.
inline constexpr std::int64_t kMaxSourcePixels = std::int64_t{1} << 28;

/// Decoders that will be added to `bin` or below it refuse larger pictures than kMaxFrameSide a
/// side or kMaxSourcePixels by an error on the bus, before they make memory for them.
void refuse_vast_pictures(GstBin* bin);

/// True when a demuxer in `bin` has stopped reading and made no pad: it will never give a frame.
/// Its error may have been lost: parsebin drops what an element posts while it is being plugged,
/// also when the element stays.
bool demuxer_gave_up(GstBin* bin);

/// gst_element_factory_make whose failure says which package usually has it.
Result<GstElement*> make_element(const char* factory, const char* name = nullptr);

}  // namespace penstock
