/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only functions through which `sim` moves bytes for its callers. They live in a shared library
 * of their own and are called across its border, so that a preloaded audit traps them by name like
 * the copy calls of a GPU driver.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void penstock_sim_copy_to_host(void* destination, const void* source, size_t size);
void penstock_sim_copy_to_device(void* destination, const void* source, size_t size);
void penstock_sim_copy_device(void* destination, const void* source, size_t size);

#ifdef __cplusplus
}
#endif
