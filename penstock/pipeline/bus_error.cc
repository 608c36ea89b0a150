// SPDX-License-Identifier: Apache-2.0
#include "penstock/pipeline/bus_error.h"

#include <optional>
#include <string>
#include <string_view>

#include "penstock/base/str_format.h"

namespace penstock {
namespace {

ErrorKind kind_of(const GError& error) {
  if (error.domain == GST_RESOURCE_ERROR) {
    switch (error.code) {
      case GST_RESOURCE_ERROR_NOT_FOUND:
      case GST_RESOURCE_ERROR_OPEN_READ:
      case GST_RESOURCE_ERROR_OPEN_READ_WRITE:
        return ErrorKind::kNotFound;
      case GST_RESOURCE_ERROR_NO_SPACE_LEFT:
        return ErrorKind::kExhausted;
      case GST_RESOURCE_ERROR_NOT_AUTHORIZED:
      case GST_RESOURCE_ERROR_OPEN_WRITE:
        return ErrorKind::kPermission;
      case GST_RESOURCE_ERROR_SETTINGS:
        return ErrorKind::kInvalidArgument;
      case GST_RESOURCE_ERROR_READ:
      case GST_RESOURCE_ERROR_WRITE:
      case GST_RESOURCE_ERROR_SEEK:
      case GST_RESOURCE_ERROR_SYNC:
      case GST_RESOURCE_ERROR_CLOSE:
        return ErrorKind::kIo;
      default:
        return ErrorKind::kDevice;
    }
  }
  if (error.domain == GST_STREAM_ERROR) {
    switch (error.code) {
      case GST_STREAM_ERROR_TYPE_NOT_FOUND:
      case GST_STREAM_ERROR_WRONG_TYPE:
      case GST_STREAM_ERROR_CODEC_NOT_FOUND:
      case GST_STREAM_ERROR_NOT_IMPLEMENTED:
        return ErrorKind::kUnsupported;
      case GST_STREAM_ERROR_ENCODE:
      case GST_STREAM_ERROR_MUX:
        return ErrorKind::kIo;
      default:
        return ErrorKind::kCorrupt;
    }
  }
  if (error.domain == GST_CORE_ERROR) {
    switch (error.code) {
      case GST_CORE_ERROR_NEGOTIATION:
      case GST_CORE_ERROR_CAPS:
      case GST_CORE_ERROR_MISSING_PLUGIN:
        return ErrorKind::kUnsupported;
      default:
        return ErrorKind::kInternal;
    }
  }
  if (error.domain == GST_LIBRARY_ERROR) {
    return error.code == GST_LIBRARY_ERROR_SETTINGS ? ErrorKind::kInvalidArgument
                                                    : ErrorKind::kDevice;
  }
  return ErrorKind::kDevice;
}

// "streaming stopped, reason not-negotiated (-4)" is the only telling part of "Internal data stream
// error."; it ends the debug text.
std::string reason_of(const char* debug) {
  const std::string text = debug == nullptr ? "" : debug;
  const std::size_t at = text.rfind("reason ");
  if (at == std::string::npos) return {};
  const std::size_t end = text.find_first_of(" (\n", at + 7);
  return text.substr(at + 7, end == std::string::npos ? end : end - at - 7);
}

// peninfer's debug text ends in "kind NAME", which says more than GStreamer's codes.
std::optional<ErrorKind> kind_in(const char* debug) {
  const std::string_view text = debug == nullptr ? "" : debug;
  const std::size_t at = text.rfind("kind ");
  if (at == std::string_view::npos) return std::nullopt;
  for (ErrorKind kind :
       {ErrorKind::kInvalidArgument, ErrorKind::kNotFound, ErrorKind::kPermission,
        ErrorKind::kCorrupt, ErrorKind::kUnsupported, ErrorKind::kExhausted, ErrorKind::kCancelled,
        ErrorKind::kDeadline, ErrorKind::kIo, ErrorKind::kDevice, ErrorKind::kInternal}) {
    if (text.substr(at + 5) == to_string(kind)) return kind;
  }
  return std::nullopt;
}

/// The first model's element and those of stages.
bool is_model(std::string_view element) {
  return element == "infer" || element.starts_with(kStageName);
}

}  // namespace

BusError read_bus_error(GstMessage* message, const Source& source, const std::string& video) {
  GError* error = nullptr;
  gchar* debug = nullptr;
  gst_message_parse_error(message, &error, &debug);
  std::string text = without_password_of(source, error->message);
  ErrorKind kind = kind_of(*error);
  if (is_model(GST_MESSAGE_SRC_NAME(message))) {
    kind = kind_in(debug).value_or(kind);
  }
  if (error->domain == GST_STREAM_ERROR && error->code == GST_STREAM_ERROR_FAILED) {
    const std::string reason = reason_of(debug);
    if (!reason.empty()) text += str_format(" ({})", reason);
  }
  // rtspsrc's text is "Could not open resource"; that nobody was there it says in the debug text
  // only, and not why.
  if (error->domain == GST_RESOURCE_ERROR && debug != nullptr &&
      std::string_view(debug).contains("Failed to connect")) {
    text += " No connection: is the host up, and does something listen at that port?";
  }
  g_error_free(error);
  g_free(debug);

  RunPart part = RunPart::kPipeline;
  std::string what;
  for (GstObject* object = GST_MESSAGE_SRC(message); object != nullptr;
       object = GST_OBJECT_PARENT(object)) {
    const std::string name = GST_OBJECT_NAME(object);
    if (name == "input") {
      part = RunPart::kSource;
      what = str_format("source '{}'", source.text);
      break;
    }
    if (name == "video") {
      part = kind == ErrorKind::kPermission || kind == ErrorKind::kNotFound ? RunPart::kOutputCreate
                                                                            : RunPart::kOutputWrite;
      what = str_format("writing '{}'", video);
      break;
    }
    if (is_model(name)) {
      part = RunPart::kModel;
      break;
    }
  }
  Error result(kind, std::move(text));
  if (!what.empty()) result.context(std::move(what));
  return {std::move(result), part};
}

}  // namespace penstock
