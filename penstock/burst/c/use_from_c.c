/* SPDX-License-Identifier: Apache-2.0
 *
 * The header as a C11 program sees it, and a whole round with a server: doubles numbers.
 *   use_from_c SOCKET
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "penstock/burst/c/penstock_burst.h"

/* The binary interface of version 1. */
_Static_assert(PENSTOCK_BURST_VERSION == 1u, "a new version keeps what is below");
_Static_assert(sizeof(penstock_burst_options) == 24, "options");
_Static_assert(sizeof(penstock_burst_argument) == 32, "argument");
_Static_assert(offsetof(penstock_burst_argument, dimensions) == 16, "argument");
_Static_assert(sizeof(penstock_burst_execution) == 56, "execution");
_Static_assert(offsetof(penstock_burst_execution, timeout_ns) == 40, "execution");
_Static_assert(sizeof(penstock_burst_outcome) == 32, "outcome");
_Static_assert(sizeof(penstock_burst_tensor) == 24 + 2 * 8 * 32, "tensor");

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, penstock_burst_last_error());
  return 1;
}

int main(int argc, char** argv) {
  penstock_burst_client* client = NULL;
  penstock_burst_memory *values = NULL, *places = NULL, *out = NULL;
  penstock_burst_tensor tensor = {sizeof tensor, NULL, 0, 0, {0}, {0}};
  penstock_burst_outcome outcome = {sizeof outcome, -1, 0, 0, 0};
  uint32_t dims[1] = {1000}, told[4] = {0}, rank = 0;
  int32_t sufficient = 0;
  if (argc != 2 || penstock_burst_version() != PENSTOCK_BURST_VERSION) return 64;

  if (penstock_burst_connect("/nonexistent", NULL, NULL, &client) != PENSTOCK_BURST_NOT_FOUND ||
      client != NULL || strstr(penstock_burst_last_error(), "/nonexistent") == NULL) {
    return fail("nobody there");
  }
  if (penstock_burst_connect(argv[1], "other", NULL, &client) != PENSTOCK_BURST_REFUSED) {
    return fail("another model");
  }
  if (penstock_burst_connect(argv[1], "small", NULL, &client) != PENSTOCK_BURST_OK) {
    return fail("connect");
  }
  if (penstock_burst_input_count(client) != 2 || penstock_burst_output_count(client) != 2 ||
      penstock_burst_input(client, 0, &tensor) != PENSTOCK_BURST_OK ||
      strcmp(tensor.name, "values") != 0 || tensor.type != PENSTOCK_BURST_FLOAT32 ||
      tensor.rank != 1 || tensor.maximum[0] != 100000 ||
      penstock_burst_input(client, 2, &tensor) != PENSTOCK_BURST_INVALID) {
    return fail("describe");
  }
  if (penstock_burst_memory_create(4000, PENSTOCK_BURST_INPUT, &values) ||
      penstock_burst_memory_create(16, PENSTOCK_BURST_INPUT, &places) ||
      penstock_burst_memory_create(8192, PENSTOCK_BURST_OUTPUT, &out) ||
      penstock_burst_memory_create(0, PENSTOCK_BURST_INPUT, &out) != PENSTOCK_BURST_INVALID) {
    return fail("memory");
  }
  for (int i = 0; i < 1000; ++i) ((float*)penstock_burst_memory_data(values))[i] = (float)i;
  ((int64_t*)penstock_burst_memory_data(places))[0] = 40;
  ((int64_t*)penstock_burst_memory_data(places))[1] = 2;

  penstock_burst_argument inputs[2] = {{values, 0, 4000, dims, 1}, {places, 0, 16, NULL, 0}};
  penstock_burst_argument outputs[2] = {{out, 64, 4000, NULL, 0}, {out, 0, 8, NULL, 0}};
  penstock_burst_execution execution = {sizeof execution, inputs,       2, outputs, 2,
                                        10000000000u,     1 /* time */, 0};
  for (int round = 0; round < 3; ++round) {
    if (penstock_burst_execute(client, &execution, &outcome) != PENSTOCK_BURST_OK ||
        outcome.status != PENSTOCK_BURST_STATUS_NONE || outcome.time_in_driver_us == UINT64_MAX) {
      return fail("execute");
    }
  }
  if (((float*)penstock_burst_memory_data(out))[16 + 999] != 1998.0f ||
      ((int64_t*)penstock_burst_memory_data(out))[0] != 42) {
    return fail("result");
  }
  outputs[0].length = 100;
  if (penstock_burst_execute(client, &execution, &outcome) != PENSTOCK_BURST_OK ||
      outcome.status != PENSTOCK_BURST_STATUS_OUTPUT_INSUFFICIENT_SIZE ||
      penstock_burst_output_shape(client, 0, told, 4, &rank, &sufficient) != PENSTOCK_BURST_OK ||
      rank != 1 || told[0] != 1000 || sufficient != 0) {
    return fail("too small");
  }
  execution.timeout_ns = 0;
  if (penstock_burst_execute(client, &execution, &outcome) != PENSTOCK_BURST_INVALID) {
    return fail("no time-out");
  }
  /* In an order that is as good as any. */
  penstock_burst_memory_destroy(values);
  penstock_burst_close(client);
  penstock_burst_memory_destroy(places);
  penstock_burst_memory_destroy(out);
  penstock_burst_close(NULL);
  penstock_burst_memory_destroy(NULL);
  return 0;
}
