// SPDX-License-Identifier: Apache-2.0
#include "penstock/memory/device_checks.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

#include "penstock/base/str_format.h"

namespace penstock {

std::size_t transfer_limit(TransferPurpose purpose) {
  switch (purpose) {
    case TransferPurpose::kDetections:
      return 4 + 300 * 24;
    case TransferPurpose::kMetadata:
      return std::size_t{256} << 10;
    case TransferPurpose::kTestContent:
      return std::numeric_limits<std::size_t>::max();
  }
  return 0;
}

std::string_view transfer_site(TransferPurpose purpose) {
  switch (purpose) {
    case TransferPurpose::kDetections:
      return "memory/detections";
    case TransferPurpose::kMetadata:
      return "memory/metadata";
    case TransferPurpose::kTestContent:
      return "memory/test-content";
  }
  return "memory/unknown";
}

Result<void> check_region(const StorageRegion& region, DeviceId device, std::string_view what) {
  if (const Result<void> valid = validate(region); !valid) {
    return std::unexpected(valid.error().context(str_format("{}: {}", to_string(device), what)));
  }
  if (region.storage->device() != device) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{}: {}: the storage is on {}", to_string(device), what,
                           to_string(region.storage->device())));
  }
  return {};
}

Result<void> check_copy(const StorageRegion& destination, const StorageRegion& source,
                        DeviceId device) {
  PENSTOCK_TRY(check_region(destination, device, "copy destination"));
  PENSTOCK_TRY(check_region(source, device, "copy source"));
  if (destination.size != source.size) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{}: copy: the destination has {} bytes, the source {}",
                           to_string(device), destination.size, source.size));
  }
  return {};
}

Result<void> check_transfer(const StorageRegion& region, std::size_t host_size,
                            TransferPurpose purpose, DeviceId device, std::string_view what) {
  PENSTOCK_TRY(check_region(region, device, what));
  if (region.size != host_size) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{}: {}: the device region has {} bytes, the host side {}",
                           to_string(device), what, region.size, host_size));
  }
  if (host_size > transfer_limit(purpose)) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("{}: {}: {} bytes, but a transfer marked '{}' moves at most {}",
                           to_string(device), what, host_size, transfer_site(purpose),
                           transfer_limit(purpose)));
  }
  return {};
}

Result<void> outcome_of(const std::vector<Fence>& passed) {
  for (const Fence& fence : passed) {
    if (Result<void> outcome = fence.wait(); !outcome) return outcome;
  }
  return {};
}

Result<void> run_job(Device::Job& job, const Access& access) {
  try {
    return job(access);
  } catch (const std::exception& exception) {
    return fail(ErrorKind::kInternal, str_format("a device job threw: {}", exception.what()));
  }
}

void refuse_access(DeviceId device, const Storage& storage) {
  std::fprintf(stderr, "penstock: a job on %s asked for storage of %s\n", to_string(device).c_str(),
               to_string(storage.device()).c_str());
  std::abort();
}

}  // namespace penstock
