/* SPDX-License-Identifier: Apache-2.0
 *
 * Executions in another process, for C and whatever calls it (C99 or later).
 *
 *   penstock_burst_client *client = NULL;
 *   if (penstock_burst_connect("/run/user/1000/penstock.burst", "nanodet", NULL, &client))
 *     fail(penstock_burst_last_error());
 *   penstock_burst_memory *image = NULL, *boxes = NULL;
 *   penstock_burst_memory_create(bytes, PENSTOCK_BURST_INPUT, &image);
 *   penstock_burst_memory_create(room, PENSTOCK_BURST_OUTPUT, &boxes);
 *   ... fill penstock_burst_memory_data(image) ...
 *   penstock_burst_argument in = {image, 0, bytes, NULL, 0}, out = {boxes, 0, room, NULL, 0};
 *   penstock_burst_execution execution = {sizeof execution, &in, 1, &out, 1, 1000000000, 0, 0};
 *   penstock_burst_outcome outcome = {sizeof outcome};
 *   if (penstock_burst_execute(client, &execution, &outcome) == 0 && outcome.status == 0) ...
 *
 * Handles are opaque, and functions that make one give it only with PENSTOCK_BURST_OK. What is
 * NULL and must not be is PENSTOCK_BURST_INVALID; destroying NULL is nothing. A client is used by
 * one thread at a time, or refuses as busy; memories by whoever's turn it is. Structures begin with
 * their size, as the caller was compiled, so that later versions can add to them.
 */
#ifndef PENSTOCK_BURST_H
#define PENSTOCK_BURST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PENSTOCK_BURST_API __attribute__((visibility("default")))
#else
#define PENSTOCK_BURST_API
#endif

/* Counts up when something is added; what there is stays. */
#define PENSTOCK_BURST_VERSION 1u

typedef struct penstock_burst_client penstock_burst_client;
typedef struct penstock_burst_memory penstock_burst_memory;

/* What a call comes to. */
enum {
  PENSTOCK_BURST_OK = 0,
  PENSTOCK_BURST_INVALID = 1,   /* An argument can't be. */
  PENSTOCK_BURST_BUSY = 2,      /* Another execution runs, or a late one is not back. */
  PENSTOCK_BURST_TOO_LONG = 3,  /* The request fits no queue, and the direct path is not allowed. */
  PENSTOCK_BURST_LATE = 4,      /* The deadline passed; the server may still be at it. */
  PENSTOCK_BURST_GONE = 5,      /* The server is gone. Connect anew. */
  PENSTOCK_BURST_CORRUPT = 6,   /* The server broke the protocol. Connect anew. */
  PENSTOCK_BURST_NOT_FOUND = 7, /* Nobody listens there. */
  PENSTOCK_BURST_REFUSED = 8,   /* The server refuses: no such model, too many clients, ... */
  PENSTOCK_BURST_EXHAUSTED = 9, /* No memory, descriptor or thread. */
  PENSTOCK_BURST_FAILED = 10    /* Anything else; the last error says what. */
};

/* Statuses of an outcome: NNAPI's. */
enum {
  PENSTOCK_BURST_STATUS_NONE = 0,
  PENSTOCK_BURST_STATUS_DEVICE_UNAVAILABLE = 1,
  PENSTOCK_BURST_STATUS_GENERAL_FAILURE = 2,
  PENSTOCK_BURST_STATUS_OUTPUT_INSUFFICIENT_SIZE = 3,
  PENSTOCK_BURST_STATUS_INVALID_ARGUMENT = 4,
  PENSTOCK_BURST_STATUS_MISSED_DEADLINE_TRANSIENT = 5,
  PENSTOCK_BURST_STATUS_MISSED_DEADLINE_PERSISTENT = 6,
  PENSTOCK_BURST_STATUS_RESOURCE_EXHAUSTED_TRANSIENT = 7,
  PENSTOCK_BURST_STATUS_RESOURCE_EXHAUSTED_PERSISTENT = 8
};

enum {
  PENSTOCK_BURST_FLOAT32 = 0,
  PENSTOCK_BURST_FLOAT16 = 1,
  PENSTOCK_BURST_FLOAT64 = 2,
  PENSTOCK_BURST_UINT8 = 3,
  PENSTOCK_BURST_INT8 = 4,
  PENSTOCK_BURST_INT32 = 5,
  PENSTOCK_BURST_INT64 = 6,
  PENSTOCK_BURST_BOOL = 7
};

enum { PENSTOCK_BURST_INPUT = 1, PENSTOCK_BURST_OUTPUT = 2 };

#define PENSTOCK_BURST_MAX_RANK 32

typedef struct {
  size_t size;
  uint64_t poll_window_ns;     /* 0: sleep at once. At most 2 ms. */
  uint64_t execution_limit_ns; /* Asked of the server; 0: its own. */
} penstock_burst_options;

typedef struct {
  size_t size;
  const char* name; /* Valid as long as the client. */
  int32_t type;
  uint32_t rank;
  int64_t minimum[PENSTOCK_BURST_MAX_RANK]; /* Of each dimension; equal where it is fixed. */
  int64_t maximum[PENSTOCK_BURST_MAX_RANK];
} penstock_burst_tensor;

typedef struct {
  penstock_burst_memory* memory; /* NULL: no value. */
  uint32_t offset;
  uint32_t length;
  const uint32_t* dimensions; /* NULL: as the model says. */
  uint32_t rank;
} penstock_burst_argument;

typedef struct {
  size_t size;
  const penstock_burst_argument* inputs; /* In the model's order. */
  size_t input_count;
  const penstock_burst_argument* outputs; /* In memory of PENSTOCK_BURST_OUTPUT. */
  size_t output_count;
  uint64_t timeout_ns; /* From now; not 0. */
  int32_t measure;     /* Not 0: times are wanted. */
  int32_t allow_direct;
} penstock_burst_execution;

typedef struct {
  size_t size;
  int32_t status; /* PENSTOCK_BURST_STATUS_...; 0 is success. */
  int32_t was_direct;
  uint64_t time_on_device_us; /* UINT64_MAX: not measured. */
  uint64_t time_in_driver_us;
} penstock_burst_outcome;

PENSTOCK_BURST_API uint32_t penstock_burst_version(void);

/* Of the calling thread's last call that was not OK; valid until its next call. Never NULL. */
PENSTOCK_BURST_API const char* penstock_burst_last_error(void);

/* `model` NULL or "": the only one that is served. `options` may be NULL. */
PENSTOCK_BURST_API int penstock_burst_connect(const char* path, const char* model,
                                              const penstock_burst_options* options,
                                              penstock_burst_client** client);
/* No other thread may be in a call of this client. Memories live on. */
PENSTOCK_BURST_API void penstock_burst_close(penstock_burst_client* client);

PENSTOCK_BURST_API size_t penstock_burst_input_count(const penstock_burst_client* client);
PENSTOCK_BURST_API size_t penstock_burst_output_count(const penstock_burst_client* client);
PENSTOCK_BURST_API int penstock_burst_input(const penstock_burst_client* client, size_t index,
                                            penstock_burst_tensor* tensor);
PENSTOCK_BURST_API int penstock_burst_output(const penstock_burst_client* client, size_t index,
                                             penstock_burst_tensor* tensor);

/* All zero. An INPUT can be shown to several servers, an OUTPUT to one. */
PENSTOCK_BURST_API int penstock_burst_memory_create(size_t size, int use,
                                                    penstock_burst_memory** memory);
PENSTOCK_BURST_API void* penstock_burst_memory_data(penstock_burst_memory* memory);
PENSTOCK_BURST_API size_t penstock_burst_memory_size(const penstock_burst_memory* memory);
/* Also while a client knows it: servers forget it then. What a late execution may still write to
 * stays until it is back. */
PENSTOCK_BURST_API void penstock_burst_memory_destroy(penstock_burst_memory* memory);

/* OK: `outcome` has the server's answer, which may be a failure. */
PENSTOCK_BURST_API int penstock_burst_execute(penstock_burst_client* client,
                                              const penstock_burst_execution* execution,
                                              penstock_burst_outcome* outcome);
/* Of the last execution, of status NONE or OUTPUT_INSUFFICIENT_SIZE: up to `capacity` dimensions of
 * an output and how many it has; whether its place was large enough. */
PENSTOCK_BURST_API int penstock_burst_output_shape(const penstock_burst_client* client,
                                                   size_t index, uint32_t* dimensions,
                                                   uint32_t capacity, uint32_t* rank,
                                                   int32_t* is_sufficient);

#ifdef __cplusplus
}
#endif
#endif
