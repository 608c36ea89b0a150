// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/c/penstock_burst.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "penstock/burst/burst_client.h"
#include "penstock/burst/remote_model.h"
#include "penstock/memory/shared_file.h"

using penstock::BurstClient;
using penstock::BurstFault;

struct penstock_burst_memory {
  std::shared_ptr<penstock::SharedFile> file;
  std::size_t size;
};

struct penstock_burst_client {
  std::shared_ptr<penstock::RemoteModel> model;
  std::unique_ptr<BurstClient> client;
  std::vector<penstock::OutputShape> shapes;  // Of the last execution.
};

namespace {

static_assert(PENSTOCK_BURST_BOOL == static_cast<int>(penstock::DataType::kBool) &&
              PENSTOCK_BURST_INT64 == static_cast<int>(penstock::DataType::kInt64));

std::string& last_error() {
  thread_local std::string text;
  return text;
}

int failed(int code, const char* why) {
  last_error() = why;
  return code;
}

int code_of(const penstock::Error& error) {
  switch (error.kind()) {
    case penstock::ErrorKind::kNotFound:
      return PENSTOCK_BURST_NOT_FOUND;
    case penstock::ErrorKind::kInvalidArgument:
    case penstock::ErrorKind::kPermission:
      return PENSTOCK_BURST_REFUSED;
    case penstock::ErrorKind::kExhausted:
      return PENSTOCK_BURST_EXHAUSTED;
    case penstock::ErrorKind::kCorrupt:
      return PENSTOCK_BURST_CORRUPT;
    default:
      return PENSTOCK_BURST_FAILED;
  }
}

int failed(const penstock::Error& error) { return failed(code_of(error), error.message().c_str()); }

int code_of(BurstFault fault) {
  switch (fault) {
    case BurstFault::kBusy:
      return PENSTOCK_BURST_BUSY;
    case BurstFault::kInvalid:
      return PENSTOCK_BURST_INVALID;
    case BurstFault::kTooLong:
      return PENSTOCK_BURST_TOO_LONG;
    case BurstFault::kLate:
      return PENSTOCK_BURST_LATE;
    case BurstFault::kGone:
      return PENSTOCK_BURST_GONE;
    case BurstFault::kCorrupt:
      return PENSTOCK_BURST_CORRUPT;
  }
  return PENSTOCK_BURST_FAILED;
}

/// Nothing that C++ throws leaves a C function.
template <typename Call>
int guarded(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed(PENSTOCK_BURST_EXHAUSTED, "out of memory");
  } catch (const std::exception& error) {
    return failed(PENSTOCK_BURST_FAILED, error.what());
  }
}

penstock::Nanoseconds time_of(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 60;  // 36 years; sums with a clock fit.
  return penstock::Nanoseconds(static_cast<std::int64_t>(std::min(nanoseconds, kMost)));
}

int describe(const std::vector<penstock::TensorSpec>& specs, std::size_t index,
             penstock_burst_tensor* tensor) {
  if (tensor == nullptr || tensor->size < sizeof *tensor) {
    return failed(PENSTOCK_BURST_INVALID, "no tensor to fill, or its size is not set");
  }
  if (index >= specs.size()) return failed(PENSTOCK_BURST_INVALID, "there is no such tensor");
  const penstock::TensorSpec& spec = specs[index];
  if (spec.dims.size() > PENSTOCK_BURST_MAX_RANK) {
    return failed(PENSTOCK_BURST_FAILED, "a tensor of more than 32 dimensions");
  }
  tensor->name = spec.name.c_str();
  tensor->type = static_cast<int32_t>(spec.type);
  tensor->rank = static_cast<uint32_t>(spec.dims.size());
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    tensor->minimum[i] = spec.dims[i].minimum;
    tensor->maximum[i] = spec.dims[i].maximum;
  }
  return PENSTOCK_BURST_OK;
}

std::vector<BurstClient::Argument> arguments_of(const penstock_burst_argument* all,
                                                std::size_t count) {
  std::vector<BurstClient::Argument> arguments;
  for (std::size_t i = 0; i < count; ++i) {
    const penstock_burst_argument& given = all[i];
    BurstClient::Argument argument;
    if (given.memory != nullptr) argument.memory = given.memory->file;
    argument.offset = given.offset;
    argument.length = given.length;
    if (given.dimensions != nullptr) {
      argument.dimensions.assign(given.dimensions, given.dimensions + given.rank);
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace

uint32_t penstock_burst_version(void) { return PENSTOCK_BURST_VERSION; }

const char* penstock_burst_last_error(void) { return last_error().c_str(); }

int penstock_burst_connect(const char* path, const char* model,
                           const penstock_burst_options* options, penstock_burst_client** client) {
  return guarded([&] {
    if (path == nullptr || client == nullptr ||
        (options != nullptr && options->size < sizeof *options)) {
      return failed(PENSTOCK_BURST_INVALID,
                    "no path, no place for the client, or options without "
                    "their size");
    }
    auto remote = penstock::RemoteModel::connect(path, model == nullptr ? "" : model);
    if (!remote) return failed(remote.error());
    BurstClient::Options wanted;
    if (options != nullptr) {
      wanted.poll_window = time_of(options->poll_window_ns);
      wanted.service_poll_window = wanted.poll_window;
      wanted.execution_limit = time_of(options->execution_limit_ns);
    }
    auto made = BurstClient::create(*remote, wanted);
    if (!made) {
      const int code = code_of(made.error());
      return failed(code == PENSTOCK_BURST_FAILED ? PENSTOCK_BURST_REFUSED : code,
                    made.error().message().c_str());
    }
    *client = new penstock_burst_client{std::move(*remote), std::move(*made), {}};
    return static_cast<int>(PENSTOCK_BURST_OK);
  });
}

void penstock_burst_close(penstock_burst_client* client) { delete client; }

size_t penstock_burst_input_count(const penstock_burst_client* client) {
  return client == nullptr ? 0 : client->model->inputs().size();
}

size_t penstock_burst_output_count(const penstock_burst_client* client) {
  return client == nullptr ? 0 : client->model->outputs().size();
}

int penstock_burst_input(const penstock_burst_client* client, size_t index,
                         penstock_burst_tensor* tensor) {
  if (client == nullptr) return failed(PENSTOCK_BURST_INVALID, "no client");
  return describe(client->model->inputs(), index, tensor);
}

int penstock_burst_output(const penstock_burst_client* client, size_t index,
                          penstock_burst_tensor* tensor) {
  if (client == nullptr) return failed(PENSTOCK_BURST_INVALID, "no client");
  return describe(client->model->outputs(), index, tensor);
}

int penstock_burst_memory_create(size_t size, int use, penstock_burst_memory** memory) {
  return guarded([&] {
    if (memory == nullptr || (use != PENSTOCK_BURST_INPUT && use != PENSTOCK_BURST_OUTPUT)) {
      return failed(PENSTOCK_BURST_INVALID, "no place for the memory, or a use that is none");
    }
    auto file = penstock::SharedFile::create(size, use == PENSTOCK_BURST_INPUT
                                                       ? penstock::MapAccess::kRead
                                                       : penstock::MapAccess::kReadWrite);
    if (!file) {
      const bool is_invalid = file.error().kind() == penstock::ErrorKind::kInvalidArgument;
      return failed(is_invalid ? PENSTOCK_BURST_INVALID : code_of(file.error()),
                    file.error().message().c_str());
    }
    *memory = new penstock_burst_memory{std::move(*file), size};
    return static_cast<int>(PENSTOCK_BURST_OK);
  });
}

void* penstock_burst_memory_data(penstock_burst_memory* memory) {
  return memory == nullptr ? nullptr : memory->file->bytes().data();
}

size_t penstock_burst_memory_size(const penstock_burst_memory* memory) {
  return memory == nullptr ? 0 : memory->size;
}

void penstock_burst_memory_destroy(penstock_burst_memory* memory) { delete memory; }

int penstock_burst_execute(penstock_burst_client* client, const penstock_burst_execution* execution,
                           penstock_burst_outcome* outcome) {
  return guarded([&] {
    if (client == nullptr || execution == nullptr || outcome == nullptr ||
        execution->size < sizeof *execution || outcome->size < sizeof *outcome) {
      return failed(PENSTOCK_BURST_INVALID, "no client, execution or outcome, or sizes not set");
    }
    if (execution->timeout_ns == 0 ||
        (execution->inputs == nullptr && execution->input_count > 0) ||
        (execution->outputs == nullptr && execution->output_count > 0)) {
      return failed(PENSTOCK_BURST_INVALID, "no time-out, or arguments that are not there");
    }
    auto done = client->client->execute(
        {.inputs = arguments_of(execution->inputs, execution->input_count),
         .outputs = arguments_of(execution->outputs, execution->output_count),
         .measure =
             execution->measure != 0 ? penstock::MeasureTiming::kOn : penstock::MeasureTiming::kOff,
         .deadline =
             penstock::Deadline::after(penstock::Clock::system(), time_of(execution->timeout_ns)),
         .allow_direct = execution->allow_direct != 0});
    if (!done) {
      // Who is refused as busy must not touch what the other thread is filling.
      return failed(code_of(done.error().fault), done.error().message.c_str());
    }
    outcome->status = static_cast<int32_t>(done->result.status);
    outcome->was_direct = done->was_direct ? 1 : 0;
    outcome->time_on_device_us = done->result.timing.time_on_device;
    outcome->time_in_driver_us = done->result.timing.time_in_driver;
    client->shapes = std::move(done->result.shapes);
    return static_cast<int>(PENSTOCK_BURST_OK);
  });
}

int penstock_burst_output_shape(const penstock_burst_client* client, size_t index,
                                uint32_t* dimensions, uint32_t capacity, uint32_t* rank,
                                int32_t* is_sufficient) {
  if (client == nullptr || index >= client->shapes.size()) {
    return failed(PENSTOCK_BURST_INVALID, "the last execution told no such shape");
  }
  const penstock::OutputShape& shape = client->shapes[index];
  if (rank != nullptr) *rank = static_cast<uint32_t>(shape.dimensions.size());
  if (is_sufficient != nullptr) *is_sufficient = shape.is_sufficient ? 1 : 0;
  if (dimensions != nullptr) {
    const auto count = std::min<std::size_t>(capacity, shape.dimensions.size());
    std::copy_n(shape.dimensions.begin(), count, dimensions);
  }
  return PENSTOCK_BURST_OK;
}
