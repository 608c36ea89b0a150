// SPDX-License-Identifier: Apache-2.0
//
// GstMemory that carries a Penstock Storage no host pointer exists for. It refuses every map except
// one asking with kMapStorage, which answers with the Storage itself (as GST_MAP_VA answers with a
// surface id). The test plugin's "PenstockSim" memory is made of it.
#pragma once

#include <gst/gst.h>

#include <cstddef>

#include "gst/gst_ptr.h"
#include "penstock/memory/storage.h"

namespace penstock::gst {

/// Map flag of this memory; the mapped data pointer is a penstock::Storage*. Not constexpr: it lies
/// beyond the enumerators, where GStreamer has its users put their own.
inline const GstMapFlags kMapStorage = static_cast<GstMapFlags>(GST_MAP_FLAG_LAST << 4);

/// `mem_type` (a string literal) is the allocator's name as GStreamer shows it. The allocator
/// itself allocates nothing: memory is wrapped.
__attribute__((visibility("default"))) GstPtr<GstAllocator> new_storage_allocator(
    const char* mem_type);

/// One GstMemory over `size` bytes of `storage`. `display` (may be null) is the object the memory
/// is valid on; the memory keeps a reference to it (contract V05).
__attribute__((visibility("default"))) GstPtr<GstMemory> wrap_storage(GstAllocator* allocator,
                                                                      StoragePtr storage,
                                                                      std::size_t size,
                                                                      GObject* display);

/// Null when `memory` is of another kind.
__attribute__((visibility("default"))) StoragePtr storage_of(GstMemory* memory);
/// Borrowed; null when there is none.
__attribute__((visibility("default"))) GObject* display_of(GstMemory* memory);

}  // namespace penstock::gst
