// SPDX-License-Identifier: Apache-2.0
#include "gst/device_choice.h"

#include "gst/sharing.h"

namespace penstock::gst {

Result<DevicePtr> find_device(GstElement* element, const std::string& name) {
  const auto id = parse_device_id(name);
  if (!id) return std::unexpected(id.error());
  const ContextPtr context = find_context(element, kDeviceContext);
  if (DevicePtr offered = device_of(context.get()); offered && offered->id() == *id) {
    return offered;
  }
  if (id->kind == DeviceKind::kSim) {
    return fail(ErrorKind::kUnsupported, "device 'sim' exists only in the test plugin");
  }
  return open_device(*id);
}

}  // namespace penstock::gst
