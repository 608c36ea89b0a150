// SPDX-License-Identifier: Apache-2.0
//
// What every Device implementation checks and does the same way.
#pragma once

#include <cstddef>
#include <vector>

#include "penstock/memory/device.h"

namespace penstock {

/// kInvalidArgument unless `region` is sound and lies on `device`. `what` starts the message.
Result<void> check_region(const StorageRegion& region, DeviceId device, std::string_view what);

/// The regions of a device-to-device copy.
Result<void> check_copy(const StorageRegion& destination, const StorageRegion& source,
                        DeviceId device);

/// A marked transfer between `region` and `host_size` bytes of host memory (contract A01).
Result<void> check_transfer(const StorageRegion& region, std::size_t host_size,
                            TransferPurpose purpose, DeviceId device, std::string_view what);

/// The ledger's name for a marked transfer's call site.
std::string_view transfer_site(TransferPurpose purpose);

/// The first failure among passed fences, in order.
Result<void> outcome_of(const std::vector<Fence>& passed);

/// Runs a job and turns an exception of its into an error.
Result<void> run_job(Device::Job& job, const Access& access);

/// Ends the process: a job asked for another device's storage.
[[noreturn]] void refuse_access(DeviceId device, const Storage& storage);

}  // namespace penstock
