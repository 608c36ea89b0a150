// SPDX-License-Identifier: Apache-2.0
#include "gst/storage_memory.h"

#include <cstddef>
#include <utility>

G_BEGIN_DECLS
#define PEN_TYPE_STORAGE_ALLOCATOR (pen_storage_allocator_get_type())
G_DECLARE_FINAL_TYPE(PenStorageAllocator, pen_storage_allocator, PEN, STORAGE_ALLOCATOR,
                     GstAllocator)
G_END_DECLS

struct _PenStorageAllocator {
  GstAllocator parent;
};

G_DEFINE_TYPE(PenStorageAllocator, pen_storage_allocator, GST_TYPE_ALLOCATOR)

namespace penstock::gst {
namespace {

struct StorageMemory {
  GstMemory memory;
  StoragePtr storage;
  GstPtr<GObject> display;
};

StorageMemory* self_of(GstMemory* memory) { return reinterpret_cast<StorageMemory*>(memory); }

bool is_ours(GstMemory* memory) {
  return memory != nullptr && PEN_IS_STORAGE_ALLOCATOR(memory->allocator);
}

GstMemory* make(GstAllocator* allocator, GstMemory* parent, StoragePtr storage,
                GstPtr<GObject> display, gsize maxsize, gsize offset, gsize size) {
  auto* made = new StorageMemory{{}, std::move(storage), std::move(display)};
  gst_memory_init(GST_MEMORY_CAST(made), static_cast<GstMemoryFlags>(GST_MEMORY_FLAG_NOT_MAPPABLE),
                  allocator, parent, maxsize, 63, offset, size);
  return GST_MEMORY_CAST(made);
}

gpointer map(GstMemory* memory, GstMapInfo* info, gsize) {
  if ((info->flags & kMapStorage) == 0) return nullptr;
  return self_of(memory)->storage.get();
}

void unmap(GstMemory*, GstMapInfo*) {}

GstMemory* share(GstMemory* memory, gssize offset, gssize size) {
  StorageMemory* self = self_of(memory);
  if (size < 0) size = static_cast<gssize>(memory->size) - offset;
  GstMemory* parent = memory->parent != nullptr ? memory->parent : memory;
  GstPtr<GObject> display(self->display ? G_OBJECT(g_object_ref(self->display.get())) : nullptr);
  return make(memory->allocator, parent, self->storage, std::move(display), memory->maxsize,
              memory->offset + offset, size);
}

void free_memory(GstAllocator*, GstMemory* memory) { delete self_of(memory); }

}  // namespace

GstPtr<GstAllocator> new_storage_allocator(const char* mem_type) {
  auto* allocator =
      GST_ALLOCATOR(gst_object_ref_sink(g_object_new(PEN_TYPE_STORAGE_ALLOCATOR, nullptr)));
  allocator->mem_type = mem_type;
  allocator->mem_map_full = map;
  allocator->mem_unmap_full = unmap;
  allocator->mem_share = share;
  return GstPtr<GstAllocator>(allocator);
}

GstPtr<GstMemory> wrap_storage(GstAllocator* allocator, StoragePtr storage, std::size_t size,
                               GObject* display) {
  GstPtr<GObject> kept(display == nullptr ? nullptr : G_OBJECT(g_object_ref(display)));
  return GstPtr<GstMemory>(
      make(allocator, nullptr, std::move(storage), std::move(kept), size, 0, size));
}

StoragePtr storage_of(GstMemory* memory) {
  return is_ours(memory) ? self_of(memory)->storage : nullptr;
}

GObject* display_of(GstMemory* memory) {
  return is_ours(memory) ? self_of(memory)->display.get() : nullptr;
}

}  // namespace penstock::gst

static void pen_storage_allocator_class_init(PenStorageAllocatorClass* klass) {
  auto* allocator_class = GST_ALLOCATOR_CLASS(klass);
  allocator_class->alloc = [](GstAllocator*, gsize, GstAllocationParams*) -> GstMemory* {
    return nullptr;  // Storage comes from a Device, see wrap_storage().
  };
  allocator_class->free = penstock::gst::free_memory;
}

static void pen_storage_allocator_init(PenStorageAllocator* self) {
  GST_OBJECT_FLAG_SET(self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
}
