// SPDX-License-Identifier: Apache-2.0
#include "gst/bus_error.h"

#include <string>

#include "penstock/base/str_format.h"

namespace penstock::gst {
namespace {

struct Code {
  GQuark domain;
  gint code;
};

Code code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
      return {GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_SETTINGS};
    case ErrorKind::kNotFound:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_FOUND};
    case ErrorKind::kPermission:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NOT_AUTHORIZED};
    case ErrorKind::kCorrupt:
      return {GST_STREAM_ERROR, GST_STREAM_ERROR_DECODE};
    case ErrorKind::kUnsupported:
      return {GST_STREAM_ERROR, GST_STREAM_ERROR_WRONG_TYPE};
    case ErrorKind::kExhausted:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_NO_SPACE_LEFT};
    case ErrorKind::kIo:
      return {GST_RESOURCE_ERROR, GST_RESOURCE_ERROR_READ};
    case ErrorKind::kDevice:
      return {GST_LIBRARY_ERROR, GST_LIBRARY_ERROR_FAILED};
    case ErrorKind::kCancelled:
    case ErrorKind::kDeadline:
    case ErrorKind::kInternal:
      break;
  }
  return {GST_CORE_ERROR, GST_CORE_ERROR_FAILED};
}

void post(GstElement* element, GstMessageType type, std::string_view device,
          std::string_view operation, const Error& error) {
  const Code code = code_of(error.kind());
  const std::string text = str_format("{}: device '{}': {}: {}", GST_OBJECT_NAME(element), device,
                                      operation, error.message());
  const std::string detail = str_format("kind {}", to_string(error.kind()));
  gst_element_message_full(element, type, code.domain, code.code, g_strdup(text.c_str()),
                           g_strdup(detail.c_str()), "", "", 0);
}

}  // namespace

void post_error(GstElement* element, std::string_view device, std::string_view operation,
                const Error& error) {
  post(element, GST_MESSAGE_ERROR, device, operation, error);
}

void post_warning(GstElement* element, std::string_view device, std::string_view operation,
                  const Error& error) {
  post(element, GST_MESSAGE_WARNING, device, operation, error);
}

}  // namespace penstock::gst
