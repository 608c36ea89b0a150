// SPDX-License-Identifier: Apache-2.0
#include "gst/burst_opener.h"

#include <memory>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/burst/burst_session.h"

namespace penstock::gst {
namespace {

/// The element, which may be gone when its inference is not: others share it.
class WeakElement {
 public:
  explicit WeakElement(GstElement* element) { g_weak_ref_init(&ref_, element); }
  ~WeakElement() { g_weak_ref_clear(&ref_); }
  WeakElement(const WeakElement&) = delete;
  WeakElement& operator=(const WeakElement&) = delete;

  void warn(const std::string& text) {
    auto* const element = static_cast<GstElement*>(g_weak_ref_get(&ref_));
    if (element == nullptr) return;
    GST_ELEMENT_WARNING(element, RESOURCE, FAILED, ("%s", text.c_str()), (nullptr));
    gst_object_unref(element);
  }

 private:
  GWeakRef ref_{};
};

}  // namespace

Result<DevicePtr> find_burst_device(const std::string& name) {
  const auto id = parse_device_id(name);
  if (!id) return std::unexpected(id.error());
  if (id->kind != DeviceKind::kCpu) {
    return fail(ErrorKind::kUnsupported,
                str_format("property 'burst' needs device cpu: memory of '{}' does not cross to "
                           "another process yet",
                           name));
  }
  return open_device(*id, {.shareable = true});
}

decltype(InferenceOptions::open_session) burst_opener(GstElement* element, BurstChoice choice) {
  auto weak = std::make_shared<WeakElement>(element);
  return [weak, choice = std::move(choice)](
             const DevicePtr& device, const Manifest& manifest,
             const SessionOptions& options) -> Result<std::shared_ptr<Session>> {
    const BurstAddress address{.path = choice.path,
                               .model = choice.model.empty() ? manifest.name : choice.model};
    return BurstSession::connect(address, device,
                                 {.name = choice.path,
                                  .artefact_hash = manifest.artefact_sha256,
                                  .reconnect = choice.reconnect,
                                  .on_lost = [weak](const std::string& why) { weak->warn(why); }},
                                 options);
  };
}

}  // namespace penstock::gst
