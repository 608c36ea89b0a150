/* SPDX-License-Identifier: Apache-2.0 */
#include "penstock/memory/sim/sim_copy.h"

#include <string.h>

#define PENSTOCK_EXPORT __attribute__((visibility("default")))

PENSTOCK_EXPORT void penstock_sim_copy_to_host(void* destination, const void* source, size_t size) {
  if (size > 0) memcpy(destination, source, size);
}

PENSTOCK_EXPORT void penstock_sim_copy_to_device(void* destination, const void* source,
                                                 size_t size) {
  if (size > 0) memcpy(destination, source, size);
}

PENSTOCK_EXPORT void penstock_sim_copy_device(void* destination, const void* source, size_t size) {
  if (size > 0) memmove(destination, source, size);
}
