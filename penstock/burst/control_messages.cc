// SPDX-License-Identifier: Apache-2.0
#include "penstock/burst/control_messages.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "penstock/base/str_format.h"
#include "penstock/burst/byte_reader.h"

namespace penstock {
namespace {

constexpr std::uint32_t kMagic = 0x63426e50;  // "PnBc"
constexpr std::size_t kHeader = 16;
constexpr std::size_t kMaxText = 1024;   // Of messages for people.
constexpr std::size_t kMaxDims = 32;     // Of a specification.
constexpr std::size_t kMaxSpecs = 1024;  // Inputs, or outputs.

enum class ControlType : std::uint16_t {
  kConfigure = 1,
  kConfigured = 2,
  kGetMemories = 3,
  kMemories = 4,
  kFreeMemory = 5,
  kExecute = 6,
  kExecuted = 7,
  kClosing = 8,
  kDescribe = 9,
};

std::unexpected<Error> malformed(std::string why) {
  return fail(ErrorKind::kCorrupt, "burst control message: " + std::move(why));
}

class ByteWriter {
 public:
  template <std::integral T>
  void number(T value) {
    const auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_.push_back(static_cast<std::byte>((bits >> (8 * i)) & 0xff));
    }
  }
  void text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }
  void raw(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::string cut(std::string text) {
  if (text.size() > kMaxText) text.resize(kMaxText);
  return text;
}

// --- bodies as bytes

struct Encoder {
  ByteWriter& out;
  std::vector<int>& files;

  void descriptor(const QueueDescriptor& queue) const {
    const auto bytes = encode(queue);
    out.number(static_cast<std::uint16_t>(bytes.size()));
    out.raw(bytes);
    for (const UniqueFd& file : queue.files) files.push_back(file.get());
  }
  void specs(const std::vector<TensorSpec>& all) const {
    out.number(static_cast<std::uint16_t>(all.size()));
    for (const TensorSpec& spec : all) {
      out.text(spec.name);
      out.number(static_cast<std::uint8_t>(spec.type));
      out.number(static_cast<std::uint8_t>(spec.layout));
      out.number(static_cast<std::uint16_t>(spec.dims.size()));
      for (const Dimension& dim : spec.dims) {
        out.number(dim.minimum);
        out.number(dim.maximum);
        out.text(dim.symbol);
      }
    }
  }

  ControlType operator()(const ConfigureMessage& m) const {
    out.text(m.model);
    out.number(std::int64_t{m.poll_window.count()});
    out.number(std::int64_t{m.execution_limit.count()});
    descriptor(m.requests);
    descriptor(m.results);
    return ControlType::kConfigure;
  }
  ControlType operator()(const ConfiguredMessage& m) const {
    out.number(static_cast<std::int32_t>(m.status));
    out.text(cut(m.message));
    out.text(m.artefact_hash);
    out.number(m.generation);
    specs(m.inputs);
    specs(m.outputs);
    return ControlType::kConfigured;
  }
  ControlType operator()(const GetMemoriesMessage& m) const {
    out.number(static_cast<std::uint16_t>(m.slots.size()));
    for (const std::int32_t slot : m.slots) out.number(slot);
    return ControlType::kGetMemories;
  }
  ControlType operator()(const MemoriesMessage& m) const {
    out.number(static_cast<std::int32_t>(m.status));
    out.number(static_cast<std::uint16_t>(m.memories.size()));
    for (const BurstMemory& memory : m.memories) {
      out.number(static_cast<std::uint32_t>(memory.kind));
      out.number(static_cast<std::uint32_t>(memory.access));
      out.number(memory.offset);
      out.number(memory.size);
      files.push_back(memory.file.get());
    }
    return ControlType::kMemories;
  }
  ControlType operator()(const FreeMemoryMessage& m) const {
    out.number(m.slot);
    return ControlType::kFreeMemory;
  }
  ControlType operator()(const ExecuteMessage& m) const {
    files.push_back(m.request.get());
    return ControlType::kExecute;
  }
  ControlType operator()(const ExecutedMessage& m) const {
    files.push_back(m.result.get());
    return ControlType::kExecuted;
  }
  ControlType operator()(const ClosingMessage& m) const {
    out.text(cut(m.reason));
    return ControlType::kClosing;
  }
  ControlType operator()(const DescribeMessage& m) const {
    out.text(m.model);
    return ControlType::kDescribe;
  }
};

// --- and back. A ByteReader that ran out, or was given nonsense, says so at the end.

ErrorStatus read_status(ByteReader& in) {
  const auto value = in.number<std::int32_t>();
  const bool known = value >= 0 && value <= 8;
  if (!known) in.refuse(str_format("status {}", value));
  return known ? static_cast<ErrorStatus>(value) : ErrorStatus::kGeneralFailure;
}

template <typename Enum>
Enum read_enum(ByteReader& in, Enum last, std::string_view what) {
  const auto value = in.number<std::uint8_t>();
  if (value <= static_cast<std::uint8_t>(last)) return static_cast<Enum>(value);
  in.refuse(str_format("{} {}", what, value));
  return {};
}

/// A count that as many things of at least `least` bytes each can follow.
std::size_t read_count(ByteReader& in, std::size_t most, std::size_t least, std::string_view what) {
  const std::size_t count = in.number<std::uint16_t>();
  if (count <= most && count * least <= in.left()) return count;
  in.refuse(str_format("{} {}", count, what));
  return 0;
}

TensorSpec read_spec(ByteReader& in) {
  TensorSpec spec{.name = in.text(kMaxText), .type = {}, .layout = {}, .dims = {}};
  spec.type = read_enum(in, DataType::kBool, "data type");
  spec.layout = read_enum(in, TensorLayout::kNhwc, "layout");
  const std::size_t dims = read_count(in, kMaxDims, 18, "dimensions");
  for (std::size_t i = 0; i < dims; ++i) {
    Dimension dim{.minimum = in.number<std::int64_t>(),
                  .maximum = in.number<std::int64_t>(),
                  .symbol = in.text(kMaxText)};
    if (dim.minimum < 0 || dim.maximum < dim.minimum) in.refuse("a dimension without a value");
    spec.dims.push_back(std::move(dim));
  }
  return spec;
}

std::vector<TensorSpec> read_specs(ByteReader& in) {
  const std::size_t count = read_count(in, kMaxSpecs, 6, "specifications");
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < count && in.is_sound(); ++i) specs.push_back(read_spec(in));
  return specs;
}

Nanoseconds read_time(ByteReader& in) {
  const auto value = in.number<std::int64_t>();
  if (value < 0) in.refuse("a negative time");
  return Nanoseconds(value);
}

Result<QueueDescriptor> read_descriptor(ByteReader& in, UniqueFd file) {
  const std::size_t size = in.number<std::uint16_t>();
  const auto bytes = in.raw(size);
  if (!in.is_sound()) return malformed("a queue descriptor is cut");
  std::vector<UniqueFd> files;
  files.push_back(std::move(file));
  return decode_descriptor(bytes, std::move(files));
}

/// How many files a type has to come with; Memories has as many as memories.
std::size_t files_of(ControlType type) {
  switch (type) {
    case ControlType::kConfigure:
      return 2;
    case ControlType::kExecute:
    case ControlType::kExecuted:
      return 1;
    default:
      return 0;
  }
}

Result<ConfigureMessage> read_configure(ByteReader& in, std::vector<UniqueFd>& files) {
  ConfigureMessage m{.model = in.text(kMaxModelName),
                     .poll_window = read_time(in),
                     .execution_limit = read_time(in),
                     .requests = {},
                     .results = {}};
  auto requests = read_descriptor(in, std::move(files.at(0)));
  if (!requests) return std::unexpected(std::move(requests).error());
  auto results = read_descriptor(in, std::move(files.at(1)));
  if (!results) return std::unexpected(std::move(results).error());
  m.requests = std::move(*requests);
  m.results = std::move(*results);
  return m;
}

ConfiguredMessage read_configured(ByteReader& in) {
  return {.status = read_status(in),
          .message = in.text(kMaxText),
          .artefact_hash = in.text(kMaxText),
          .generation = in.number<std::uint64_t>(),
          .inputs = read_specs(in),
          .outputs = read_specs(in)};
}

GetMemoriesMessage read_get_memories(ByteReader& in) {
  GetMemoriesMessage m;
  const std::size_t count = read_count(in, kMaxSlotsAtOnce, 4, "slots");
  for (std::size_t i = 0; i < count; ++i) m.slots.push_back(in.number<std::int32_t>());
  return m;
}

MemoriesMessage read_memories(ByteReader& in, std::vector<UniqueFd>& files) {
  MemoriesMessage m{.status = read_status(in), .memories = {}};
  const std::size_t count = read_count(in, kMaxSlotsAtOnce, 24, "memories");
  if (count != files.size()) in.refuse(str_format("{} memories, {} files", count, files.size()));
  if (m.status != ErrorStatus::kNone && count > 0) in.refuse("memories besides an error");
  if (!in.is_sound()) return m;
  for (std::size_t i = 0; i < count; ++i) {
    // Kinds that are not known are refused by who wants to map them, one by one.
    m.memories.push_back({.kind = static_cast<MemoryKind>(in.number<std::uint32_t>()),
                          .access = static_cast<MemoryAccess>(in.number<std::uint32_t>()),
                          .offset = in.number<std::uint64_t>(),
                          .size = in.number<std::uint64_t>(),
                          .file = std::move(files.at(i))});
  }
  return m;
}

using Body = decltype(ControlMessage::body);

Result<Body> read_body(ControlType type, ByteReader& in, std::vector<UniqueFd>& files) {
  switch (type) {
    case ControlType::kConfigure: {
      auto m = read_configure(in, files);
      if (!m) return std::unexpected(std::move(m).error());
      return Body(std::move(*m));
    }
    case ControlType::kConfigured:
      return Body(read_configured(in));
    case ControlType::kGetMemories:
      return Body(read_get_memories(in));
    case ControlType::kMemories:
      return Body(read_memories(in, files));
    case ControlType::kFreeMemory:
      return Body(FreeMemoryMessage{.slot = in.number<std::int32_t>()});
    case ControlType::kExecute:
      return Body(ExecuteMessage{.request = std::move(files.at(0))});
    case ControlType::kExecuted:
      return Body(ExecutedMessage{.result = std::move(files.at(0))});
    case ControlType::kClosing:
      return Body(ClosingMessage{.reason = in.text(kMaxText)});
    case ControlType::kDescribe:
      return Body(DescribeMessage{.model = in.text(kMaxModelName)});
  }
  return malformed(str_format("type {} is none", static_cast<int>(type)));
}

}  // namespace

Result<EncodedControl> encode(const ControlMessage& message) {
  EncodedControl encoded;
  ByteWriter body;
  const ControlType type = std::visit(Encoder{body, encoded.files}, message.body);
  ByteWriter out;
  out.number(kMagic);
  out.number(kControlVersion);
  out.number(static_cast<std::uint16_t>(type));
  out.number(message.id);
  out.number(static_cast<std::uint32_t>(encoded.files.size()));
  out.raw(body.take());
  encoded.bytes = out.take();
  if (encoded.bytes.size() > FdSocket::kMaxBytes || encoded.files.size() > FdSocket::kMaxFiles) {
    return fail(ErrorKind::kInvalidArgument,
                str_format("burst control message: {} bytes and {} files; {} and {} are possible",
                           encoded.bytes.size(), encoded.files.size(), FdSocket::kMaxBytes,
                           FdSocket::kMaxFiles));
  }
  return encoded;
}

Result<ControlMessage> decode_control(FdMessage message) {
  if (message.bytes.size() < kHeader) {
    return malformed(str_format("{} bytes", message.bytes.size()));
  }
  ByteReader in(message.bytes);
  if (in.number<std::uint32_t>() != kMagic) return malformed("does not begin with PnBc");
  if (const auto version = in.number<std::uint16_t>(); version != kControlVersion) {
    return malformed(str_format("version {}; {} is spoken here", version, kControlVersion));
  }
  const auto type = static_cast<ControlType>(in.number<std::uint16_t>());
  ControlMessage decoded{.id = in.number<std::uint32_t>(), .body = FreeMemoryMessage{}};
  const auto files = in.number<std::uint32_t>();
  if (files != message.files.size()) {
    return malformed(str_format("speaks of {} files, and {} came", files, message.files.size()));
  }
  if (type != ControlType::kMemories && files != files_of(type)) {
    return malformed(str_format("type {} with {} files", static_cast<int>(type), files));
  }
  auto body = read_body(type, in, message.files);
  if (!body) return std::unexpected(std::move(body).error());
  if (!in.is_sound()) return malformed(in.fault());
  if (in.left() > 0) return malformed(str_format("{} bytes too many", in.left()));
  decoded.body = std::move(*body);
  return decoded;
}

Result<void> send_control(const FdSocket& socket, const ControlMessage& message,
                          Deadline deadline) {
  const auto encoded = encode(message);
  if (!encoded) return std::unexpected(encoded.error());
  return socket.send(encoded->bytes, encoded->files, deadline);
}

Result<ControlMessage> receive_control(const FdSocket& socket, Deadline deadline) {
  auto message = socket.receive(deadline);
  if (!message) return std::unexpected(std::move(message).error());
  return decode_control(std::move(*message));
}

}  // namespace penstock
