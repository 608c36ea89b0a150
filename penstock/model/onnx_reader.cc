// SPDX-License-Identifier: Apache-2.0
#include "penstock/model/onnx_reader.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "penstock/base/checked.h"
#include "penstock/base/str_format.h"
#include "penstock/model/manifest_parser.h"
#include "penstock/model/onnx_functions.h"
#include "penstock/model/protobuf_wire.h"

namespace penstock {
namespace {

using Bytes = std::span<const std::byte>;

/// Subgraphs in attributes in subgraphs: exporters reach 3 or 4 (loops in branches).
constexpr int kMaxNesting = 32;
constexpr std::size_t kMaxMetadata = 256;
/// Exporters end with two or three of them; a cycle ends here, too.
constexpr int kMaxMoves = 16;
/// Operations whose output has the values of their first input.
constexpr std::array<std::string_view, 11> kMoves{
    "Identity", "Reshape", "Flatten",          "Squeeze", "Unsqueeze",     "Transpose",
    "Cast",     "Dropout", "DequantizeLinear", "Resize",  "QuantizeLinear"};

std::optional<DataType> data_type(std::uint64_t onnx) {
  switch (onnx) {
    case 1:
      return DataType::kFloat32;
    case 2:
      return DataType::kUint8;
    case 3:
      return DataType::kInt8;
    case 6:
      return DataType::kInt32;
    case 7:
      return DataType::kInt64;
    case 9:
      return DataType::kBool;
    case 10:
      return DataType::kFloat16;
    case 11:
      return DataType::kFloat64;
    default:
      return std::nullopt;
  }
}

/// Elements that a byte of a tensor of this type can hold: of the types below 8 bits several are
/// packed into one, in raw data as in the integers of the other encoding.
std::int64_t elements_a_byte(std::uint64_t onnx) {
  switch (onnx) {
    case 21:  // UINT4
    case 22:  // INT4
    case 23:  // FLOAT4E2M1
      return 2;
    case 25:  // UINT2
    case 26:  // INT2
      return 4;
    default:
      return 1;
  }
}

/// Field numbers below are onnx.proto's; the function's name says the message.
class Walker {
 public:
  explicit Walker(std::size_t file_size) : file_size_(file_size) {}

  Result<OnnxSummary> model(Bytes message) {
    bool has_graph = false;
    std::string_view version;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_varint(1)) summary_.ir_version = static_cast<std::int64_t>(reader.value());
      if (reader.is_bytes(2)) summary_.producer = reader.text();
      if (reader.is_bytes(3)) version = reader.text();
      if (reader.is_bytes(8)) opset(reader.bytes());
      if (reader.is_bytes(7)) {
        has_graph = true;
        graph(reader.bytes(), 0);
      }
      if (reader.is_bytes(14)) metadata(reader.bytes());
      if (reader.is_bytes(20)) training(reader.bytes());
      if (reader.is_bytes(25)) function(reader.bytes());
    }
    finish(reader, "the model");
    if (!error_ && (!has_graph || summary_.ir_version < 1)) {
      corrupt(has_graph ? "it has no IR version" : "it has no graph");
    }
    if (auto problem = functions_.check()) corrupt(*std::move(problem));
    if (error_) return std::unexpected(*error_);
    if (!version.empty()) {
      summary_.producer += summary_.producer.empty() ? "" : " ";
      summary_.producer += version;
    }
    for (OnnxValueInfo& output : summary_.outputs) output.made_by = maker_of(output.name);
    std::erase_if(summary_.inputs,
                  [this](const OnnxValueInfo& v) { return initialisers_.contains(v.name); });
    summary_.external_files.assign(external_.begin(), external_.end());
    return std::move(summary_);
  }

 private:
  void corrupt(std::string why) {
    if (!error_) error_.emplace(ErrorKind::kCorrupt, "not a plausible ONNX model: " + why);
  }
  void finish(const WireReader& reader, std::string_view what) {
    if (!reader.ok()) corrupt(str_format("{} is truncated or not protobuf", what));
  }

  void opset(Bytes message) {
    std::string_view domain;
    std::int64_t version = 0;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1)) domain = reader.text();
      if (reader.is_varint(2)) version = static_cast<std::int64_t>(reader.value());
    }
    finish(reader, "an operator set");
    if (domain.empty() || domain == "ai.onnx") summary_.opset = version;
  }

  /// The operation behind `value`, as OnnxValueInfo::made_by has it.
  std::string maker_of(std::string_view value) const {
    std::string_view operation;
    for (int step = 0; step < kMaxMoves; ++step) {
      const auto made = makers_.find(value);
      if (made == makers_.end()) break;
      operation = made->second.operation;
      if (std::ranges::find(kMoves, operation) == kMoves.end()) break;
      value = made->second.first_input;
    }
    return std::string(operation);
  }

  void metadata(Bytes message) {
    std::pair<std::string, std::string> entry;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1)) entry.first = reader.text();
      if (reader.is_bytes(2)) entry.second = reader.text();
    }
    finish(reader, "its metadata");
    if (summary_.metadata.size() < kMaxMetadata) summary_.metadata.push_back(std::move(entry));
  }

  void training(Bytes message) {
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1) || reader.is_bytes(2)) graph(reader.bytes(), 1);
    }
    finish(reader, "its training information");
  }

  void function(Bytes message) {
    OnnxFunctions::Operation name;
    std::string_view overload;
    functions_.begin_function();
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1)) name.second = reader.text();
      if (reader.is_bytes(10)) name.first = reader.text();
      if (reader.is_bytes(7)) node(reader.bytes(), 1);
      if (reader.is_bytes(11)) attribute(reader.bytes(), 1);
      if (reader.is_bytes(13)) overload = reader.text();
    }
    functions_.end_function(name, overload);
    finish(reader, "a function");
  }

  void graph(Bytes message, int depth) {
    if (depth > kMaxNesting) return corrupt(str_format("graphs nest deeper than {}", kMaxNesting));
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1)) node(reader.bytes(), depth);
      if (reader.is_bytes(5)) {
        const std::string name = tensor(reader.bytes(), depth == 0);
        if (depth == 0) initialisers_.insert(name);
      }
      if (reader.is_bytes(15)) sparse_tensor(reader.bytes());
      if (depth == 0 && reader.is_bytes(11)) summary_.inputs.push_back(value_info(reader.bytes()));
      if (depth == 0 && reader.is_bytes(12)) summary_.outputs.push_back(value_info(reader.bytes()));
    }
    finish(reader, "a graph");
  }

  void node(Bytes message, int depth) {
    Maker maker;
    std::string_view domain;
    bool has_input = false;
    std::vector<std::string_view> outputs;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1) && !has_input) {
        maker.first_input = reader.text();
        has_input = true;
      }
      if (reader.is_bytes(2)) outputs.push_back(reader.text());
      if (reader.is_bytes(4)) maker.operation = reader.text();
      if (reader.is_bytes(7)) domain = reader.text();
      if (reader.is_bytes(5)) attribute(reader.bytes(), depth);
    }
    finish(reader, "a node");
    functions_.count_node({domain, maker.operation});
    if (depth > 0) return;
    for (const std::string_view output : outputs) makers_.emplace(output, maker);
  }

  void attribute(Bytes message, int depth) {
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(5) || reader.is_bytes(10)) tensor(reader.bytes());
      if (reader.is_bytes(6) || reader.is_bytes(11)) graph(reader.bytes(), depth + 1);
      if (reader.is_bytes(22) || reader.is_bytes(23)) sparse_tensor(reader.bytes());
    }
    finish(reader, "an attribute");
  }

  void sparse_tensor(Bytes message) {
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1) || reader.is_bytes(2)) tensor(reader.bytes());
    }
    finish(reader, "a sparse tensor");
  }

  /// Returns the tensor's name.
  std::string tensor(Bytes message, bool is_top_initialiser = false) {
    std::string name;
    std::uint64_t element_type = 0;
    std::vector<std::int64_t> dims;
    bool external = false;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_varint(1)) dims.push_back(static_cast<std::int64_t>(reader.value()));
      if (reader.is_bytes(1)) {
        WireReader packed(reader.bytes());
        std::uint64_t dim = 0;
        while (!packed.at_end()) {
          if (!packed.read_varint(dim)) {
            corrupt("a tensor's dimensions are broken");
            return name;
          }
          dims.push_back(static_cast<std::int64_t>(dim));
        }
      }
      if (reader.is_varint(2)) element_type = reader.value();
      if (reader.is_bytes(8)) name = reader.text();
      if (reader.is_bytes(13)) {
        external = true;
        external_entry(reader.bytes());
      }
    }
    finish(reader, "a tensor");
    if (external && !is_top_initialiser && !summary_.external_elsewhere) {
      summary_.external_elsewhere = name;
    }
    std::int64_t elements = 1;
    for (const std::int64_t dim : dims) {
      const auto product = dim < 0 ? std::nullopt : checked_product(elements, dim);
      if (!product) {
        corrupt(str_format("tensor '{}' has a negative or overflowing shape", name));
        return name;
      }
      elements = *product;
    }
    const std::int64_t packed = elements_a_byte(element_type);
    const std::int64_t least = elements / packed + (elements % packed != 0 ? 1 : 0);
    if (!external && std::cmp_greater(least, file_size_)) {
      corrupt(str_format("tensor '{}' claims {} elements, the file has {} bytes", name, elements,
                         file_size_));
    }
    return name;
  }

  void external_entry(Bytes message) {
    std::string_view key, value;
    WireReader reader(message);
    while (reader.next()) {
      if (reader.is_bytes(1)) key = reader.text();
      if (reader.is_bytes(2)) value = reader.text();
    }
    finish(reader, "an external data entry");
    if (key == "location") external_.emplace(value);
  }

  OnnxValueInfo value_info(Bytes message) {
    OnnxValueInfo info;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (reader.is_bytes(1)) info.name = reader.text();
      if (reader.is_bytes(2)) type(reader.bytes(), info);
    }
    finish(reader, "a value");
    return info;
  }

  void type(Bytes message, OnnxValueInfo& info) {
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (!reader.is_bytes(1)) continue;  // sequences, maps: no type
      WireReader tensor_type(reader.bytes());
      while (tensor_type.next() && !error_) {
        if (tensor_type.is_varint(1)) info.type = data_type(tensor_type.value());
        if (tensor_type.is_bytes(2)) shape(tensor_type.bytes(), info);
      }
      finish(tensor_type, "a value's type");
    }
    finish(reader, "a value's type");
  }

  void shape(Bytes message, OnnxValueInfo& info) {
    info.has_shape = true;
    WireReader reader(message);
    while (reader.next() && !error_) {
      if (!reader.is_bytes(1)) continue;
      Dimension dim{1, kMaxSymbolicDimension, {}};
      WireReader field(reader.bytes());
      while (field.next()) {
        if (field.is_varint(1)) dim = Dimension::fixed(static_cast<std::int64_t>(field.value()));
        if (field.is_bytes(2)) dim = {1, kMaxSymbolicDimension, std::string(field.text())};
      }
      finish(field, "a dimension");
      info.dims.push_back(std::move(dim));
    }
    finish(reader, "a shape");
    std::int64_t elements = 1;
    for (const Dimension& dim : info.dims) {
      if (!dim.is_fixed()) continue;
      const auto product = dim.minimum < 0 ? std::nullopt : checked_product(elements, dim.minimum);
      if (!product) {
        return corrupt(str_format("value '{}' has a negative or overflowing shape", info.name));
      }
      elements = *product;
    }
  }

  /// What makes a value of the top graph; the texts lie in the file's bytes.
  struct Maker {
    std::string_view operation;
    std::string_view first_input;
  };

  const std::size_t file_size_;
  std::unordered_map<std::string_view, Maker> makers_;
  OnnxFunctions functions_;
  std::optional<Error> error_;
  OnnxSummary summary_;
  std::set<std::string> initialisers_;
  std::set<std::string> external_;
};

}  // namespace

Result<OnnxSummary> read_onnx_summary(std::span<const std::byte> model) {
  return Walker(model.size()).model(model);
}

}  // namespace penstock
