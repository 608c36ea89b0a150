// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/session_executor.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "penstock/base/log.h"
#include "penstock/base/str_format.h"
#include "penstock/burst/session_model.h"
#include "penstock/burst/shared_copy.h"

namespace penstock {
namespace {

using Memories = std::map<std::int32_t, std::shared_ptr<MappedMemory>>;

ErrorStatus status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kCorrupt:
    case ErrorKind::kUnsupported:
      return ErrorStatus::kInvalidArgument;
    case ErrorKind::kExhausted:
      return ErrorStatus::kResourceExhaustedTransient;
    case ErrorKind::kDeadline:
      return ErrorStatus::kMissedDeadlineTransient;
    default:
      return ErrorStatus::kGeneralFailure;
  }
}

BurstResult failed(const Error& error) {
  log("burst").warn("a request failed: {}", error.message());
  return {.status = status_of(error.kind()), .shapes = {}, .timing = {}};
}

std::unexpected<Error> invalid(const char* what, std::size_t index, std::string why) {
  return fail(ErrorKind::kInvalidArgument, str_format("{} {}: {}", what, index, why));
}

/// The bytes that an argument names, and the memory that they lie in.
struct Place {
  std::shared_ptr<MappedMemory> memory;
  std::span<std::byte> bytes;
};

Result<Place> find_place(const char* what, std::size_t index, const RequestArgument& argument,
                         const BurstRequest& request, const Memories& memories,
                         std::size_t alignment) {
  const DataLocation& at = argument.location;
  if (at.pool >= request.slots.size()) {
    return invalid(what, index, str_format("pool {} of {}", at.pool, request.slots.size()));
  }
  const auto found = memories.find(request.slots[at.pool]);
  if (found == memories.end()) return invalid(what, index, "its slot is unknown");
  const auto all = found->second->bytes();
  if (std::uint64_t{at.offset} + at.length > all.size()) {
    return invalid(what, index,
                   str_format("{} bytes from {} on, of {}", at.length, at.offset, all.size()));
  }
  // Mappings begin at pages, and so do offsets into them.
  if (at.offset % alignment != 0) {
    return invalid(what, index, str_format("offset {} is no multiple of {}", at.offset, alignment));
  }
  return Place{found->second, all.subspan(at.offset, at.length)};
}

Result<Shape> shape_of(std::size_t index, const RequestArgument& argument, const TensorSpec& spec) {
  Shape shape;
  if (argument.dimensions.empty()) {
    for (const Dimension& dim : spec.dims) {
      if (!dim.is_fixed()) return invalid("input", index, "the model leaves its dimensions open");
      shape.push_back(dim.minimum);
    }
    return shape;
  }
  for (const std::uint32_t dim : argument.dimensions) shape.push_back(dim);
  return shape;
}

bool decides(DataType type) {
  return type == DataType::kBool || type == DataType::kInt32 || type == DataType::kInt64;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() &&
         b.data() < a.data() + a.size();
}

/// One request on its way through a session.
class Execution {
 public:
  Execution(Device& device, Session& session, const Memories& memories, const BurstRequest& request)
      : device_(device), session_(session), memories_(memories), request_(request) {}

  Result<BurstResult> perform(const Clock& clock) {
    PENSTOCK_TRY(take_inputs());
    PENSTOCK_TRY(find_outputs());
    const TimePoint from = clock.now();
    auto outputs = session_.run(inputs_);
    if (!outputs) return std::unexpected(std::move(outputs).error());
    for (const Tensor& output : *outputs) {
      PENSTOCK_TRY(output.ready.wait());
    }
    auto result = give(*outputs);
    result.timing.time_on_device = static_cast<std::uint64_t>((clock.now() - from).count()) / 1000;
    return result;
  }

 private:
  Result<void> take_inputs() {
    const auto& specs = session_.inputs();
    if (request_.inputs.size() != specs.size()) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("{} inputs instead of {}", request_.inputs.size(), specs.size()));
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      PENSTOCK_TRY(take_input(i, request_.inputs[i], specs[i]));
    }
    return {};
  }

  Result<void> take_input(std::size_t index, const RequestArgument& argument,
                          const TensorSpec& spec) {
    if (argument.has_no_value) return invalid("input", index, "it has no value");
    // Before they are told of: a client can name thousands.
    if (!argument.dimensions.empty() && argument.dimensions.size() != spec.dims.size()) {
      return invalid(
          "input", index,
          str_format("{} dimensions instead of {}", argument.dimensions.size(), spec.dims.size()));
    }
    auto shape = shape_of(index, argument, spec);
    if (!shape) return std::unexpected(std::move(shape).error());
    const auto size = byte_size(spec.type, *shape);
    if (!size) return std::unexpected(size.error());
    if (*size != argument.location.length) {
      return invalid("input", index,
                     str_format("{} bytes, where its dimensions {} need {}",
                                argument.location.length, to_string(*shape), *size));
    }
    auto place = find_place("input", index, argument, request_, memories_, size_of(spec.type));
    if (!place) return std::unexpected(std::move(place).error());
    places_.push_back(place->bytes);
    auto storage = decides(spec.type) || place->bytes.size() < kSnapshotBelow
                       ? snapshot(place->bytes)
                       : wrap_host_memory(place->bytes, place->memory);
    if (!storage) return std::unexpected(std::move(storage).error());
    inputs_.push_back({.name = spec.name,
                       .type = spec.type,
                       .shape = std::move(*shape),
                       .data = {.storage = std::move(*storage), .offset = 0, .size = *size},
                       .ready = {}});
    return {};
  }

  Result<StoragePtr> snapshot(std::span<const std::byte> shared) {
    auto storage = device_.allocate(shared.size());
    if (!storage) return std::unexpected(std::move(storage).error());
    copy_from_shared((*storage)->host_bytes().data(), shared.data(), shared.size());
    device_.ledger().record(CopyClass::kTensor, "burst/snapshot", shared.size());
    return storage;
  }

  Result<void> find_outputs() {
    const auto& specs = session_.outputs();
    if (request_.outputs.size() != specs.size()) {
      return fail(ErrorKind::kInvalidArgument,
                  str_format("{} outputs instead of {}", request_.outputs.size(), specs.size()));
    }
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const RequestArgument& argument = request_.outputs[i];
      if (argument.has_no_value) {
        outputs_.emplace_back();
        continue;
      }
      PENSTOCK_TRY(check_wanted(i, argument, specs[i]));
      auto place = find_place("output", i, argument, request_, memories_, size_of(specs[i].type));
      if (!place) return std::unexpected(std::move(place).error());
      if (place->memory->access() != MemoryAccess::kReadWrite) {
        return invalid("output", i, "its memory is for reading only");
      }
      for (const auto& other : places_) {
        if (overlap(other, place->bytes)) return invalid("output", i, "it overlaps another place");
      }
      places_.push_back(place->bytes);
      outputs_.push_back(place->bytes);
    }
    return {};
  }

  /// Dimensions that a client states for an output must be the model's; 0 leaves one open.
  static Result<void> check_wanted(std::size_t index, const RequestArgument& argument,
                                   const TensorSpec& spec) {
    if (argument.dimensions.empty()) return {};
    if (argument.dimensions.size() != spec.dims.size()) {
      return invalid(
          "output", index,
          str_format("{} dimensions instead of {}", argument.dimensions.size(), spec.dims.size()));
    }
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
      const std::uint32_t dim = argument.dimensions[i];
      if (dim != 0 && !spec.dims[i].accepts(dim)) {
        return invalid("output", index, str_format("dimension {} can't be {}", i, dim));
      }
    }
    return {};
  }

  BurstResult give(const std::vector<Tensor>& tensors) {
    BurstResult result{.status = ErrorStatus::kNone, .shapes = {}, .timing = {}};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& tensor = tensors[i];
      OutputShape shape{.dimensions = {}, .is_sufficient = true};
      for (const std::int64_t dim : tensor.shape) {
        shape.dimensions.push_back(static_cast<std::uint32_t>(dim));
      }
      if (outputs_.at(i) && outputs_[i]->size() < tensor.data.size) {
        shape.is_sufficient = false;
        result.status = ErrorStatus::kOutputInsufficientSize;
      }
      result.shapes.push_back(std::move(shape));
    }
    if (result.status != ErrorStatus::kNone) return result;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (!outputs_[i]) continue;
      const StorageRegion& data = tensors[i].data;
      const auto from = data.storage->host_bytes().subspan(data.offset, data.size);
      std::memcpy(outputs_[i]->data(), from.data(), from.size());
      device_.ledger().record(CopyClass::kTensor, "burst/output", from.size());
    }
    return result;
  }

  Device& device_;
  Session& session_;
  const Memories& memories_;
  const BurstRequest& request_;
  std::vector<Tensor> inputs_;
  std::vector<std::optional<std::span<std::byte>>> outputs_;
  std::vector<std::span<const std::byte>> places_;
};

}  // namespace

ErrorStatus SessionExecutor::add(std::int32_t slot, BurstMemory memory) {
  auto mapped = MappedMemory::map(std::move(memory), *quota_);
  if (!mapped) {
    log("burst").warn("slot {}: {}", slot, mapped.error().message());
    return status_of(mapped.error().kind());
  }
  memories_.insert_or_assign(slot, std::move(*mapped));
  return ErrorStatus::kNone;
}

BurstResult SessionExecutor::execute(const BurstRequest& request, Deadline deadline) {
  if (deadline.passed(*clock_)) {
    return {.status = ErrorStatus::kMissedDeadlineTransient, .shapes = {}, .timing = {}};
  }
  auto result = Execution(*device_, *session_, memories_, request).perform(*clock_);
  if (!result) return failed(result.error());
  // A result that nobody waits for any more must not be taken for one in time.
  if (deadline.passed(*clock_)) {
    return {.status = ErrorStatus::kMissedDeadlineTransient, .shapes = {}, .timing = {}};
  }
  return std::move(*result);
}

}  // namespace penstock
