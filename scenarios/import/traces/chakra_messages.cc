#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "scenarios/import/base/byte_source.h"
#include "scenarios/import/traces/chakra.h"
#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::uint64_t kMostMessage = std::uint64_t{64} << 20;
constexpr std::size_t kMostNodes = 10'000'000;

// Numbers of fields: mlcommons/chakra (6dc63e1), schema/protobuf/et_def.proto.
namespace node_field {
enum : std::uint64_t { id = 1, name = 2, type = 3, ctrl_deps = 4, data_deps = 5, duration = 7, attribute = 10 };
}
namespace attribute_field {
enum : std::uint64_t {
  name = 1,
  first_value = 3,
  double_value = 3,
  float_value = 5,
  bool_value = 27,
  bool_list = 28,
  text = 29
};
}

// Reads a message in memory field by field, in the encoding of protocol buffers
// (protobuf.dev/programming-guides/encoding).
class Message {
 public:
  Message(std::string_view bytes, std::int64_t at, const std::string& file) : bytes_(bytes), at_(at), file_(file) {}

  // Goes to the next field; false at the end.
  bool next() {
    if (position_ >= bytes_.size()) return false;
    const std::uint64_t key = varint();
    field_ = key >> 3;
    wire_ = static_cast<int>(key & 7);
    if (field_ == 0) fail("a field has no number");
    switch (wire_) {
      case 0:
        number_ = varint();
        break;
      case 1:
        number_ = fixed(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5:
        number_ = fixed(4);
        break;
      default:
        fail(fmt::format("a field has the unknown form {}", wire_));
    }
    return true;
  }

  std::uint64_t field() const { return field_; }
  bool is_text() const { return wire_ == 2; }
  std::uint64_t number() const { return number_; }
  std::string_view text() const { return text_; }
  int wire() const { return wire_; }
  Message message() const { return {text_, at_ + static_cast<std::int64_t>(position_ - text_.size()), file_}; }
  bool is_at_end() const { return position_ >= bytes_.size(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (position_ >= bytes_.size()) fail("ends in the middle of a number");
      const auto byte = static_cast<unsigned char>(bytes_[position_++]);
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail("a number has more than ten bytes");
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({problem_at(file_, {.byte = at_ + static_cast<std::int64_t>(position_)},
                                 message + ": is no Chakra trace, or a damaged one")});
  }

 private:
  std::string_view take(std::uint64_t length) {
    if (length > bytes_.size() - position_) fail(fmt::format("a field of {} bytes ends beyond its message", length));
    const std::string_view part = bytes_.substr(position_, length);
    position_ += length;
    return part;
  }
  std::uint64_t fixed(std::size_t size) {
    const std::string_view part = take(size);
    std::uint64_t value = 0;
    std::memcpy(&value, part.data(), size);  // little endian, as every machine that Tandem runs on
    return value;
  }

  std::string_view bytes_;
  std::int64_t at_;  // of the message in the file
  const std::string& file_;
  std::size_t position_ = 0;
  std::uint64_t field_ = 0, number_ = 0;
  int wire_ = 0;
  std::string_view text_;
};

// The value of an attribute, in whichever form its writer chose.
struct AttributeValue {
  double number = 0;
  std::string text{};
  bool has_false = false;  // of a list of booleans
};

AttributeValue value_of(Message& field) {
  AttributeValue value;
  if (field.is_text()) {
    value.text = field.text();
    if (field.field() != attribute_field::bool_list) return value;
    for (Message list = field.message(); list.next();) {
      if (!list.is_text()) value.has_false |= list.number() == 0;
      for (const char byte : list.is_text() ? list.text() : std::string_view{}) value.has_false |= byte == 0;
    }
  } else if (field.field() == attribute_field::double_value) {
    value.number = std::bit_cast<double>(field.number());
  } else if (field.field() == attribute_field::float_value) {
    value.number = std::bit_cast<float>(static_cast<std::uint32_t>(field.number()));
  } else {
    const bool is_zigzag = field.field() == 15 || field.field() == 17;  // sint32, sint64
    const std::uint64_t raw = field.number();
    const auto decoded = is_zigzag ? static_cast<std::int64_t>(raw >> 1) ^ -static_cast<std::int64_t>(raw & 1)
                                   : static_cast<std::int64_t>(raw);
    value.number = static_cast<double>(decoded);
  }
  return value;
}

constexpr double kMostNumber = 1e15;

std::int64_t whole_of(const Message& message, std::string_view name, double number) {
  if (number >= 0 && number <= kMostNumber) return static_cast<std::int64_t>(number);
  message.fail(fmt::format("'{}' is {}", name, number));
}

std::int64_t duration_of(const Message& message, double microseconds) {
  const std::string written = fmt::format("{} us", microseconds);
  const std::string problem = quantity_problem(microseconds * 1e-6, Dimension::seconds, written, true);
  if (!problem.empty()) message.fail("'duration_micros' " + problem);
  return static_cast<std::int64_t>(microseconds);
}

void set_attribute(const Message& message, std::string_view name, const AttributeValue& value, ChakraNode& node) {
  if (name == "is_cpu_op") {
    node.is_cpu_op = value.number != 0;
  } else if (name == "num_ops") {
    node.flops = static_cast<double>(whole_of(message, name, value.number));
  } else if (name == "tensor_size") {
    node.tensor_bytes = static_cast<double>(whole_of(message, name, value.number));
  } else if (name == "comm_type") {
    node.collective = whole_of(message, name, value.number);
  } else if (name == "comm_size") {
    node.comm_bytes = whole_of(message, name, value.number);
  } else if (name == "comm_src") {
    node.source = whole_of(message, name, value.number);
  } else if (name == "comm_dst") {
    node.target = whole_of(message, name, value.number);
  } else if (name == "comm_tag") {
    if (!(std::abs(value.number) <= kMostNumber)) message.fail(fmt::format("'{}' is {}", name, value.number));
    node.tag = static_cast<std::int64_t>(value.number);
  } else if (name == "pg_name") {
    node.group = value.text.empty() ? fmt::format("{}", value.number) : value.text;
  } else if (name == "involved_dim") {
    node.has_some_dimensions = value.has_false;
  } else if (is_unused_chakra_attribute(name) && (value.number != 0 || !value.text.empty())) {
    node.unused.emplace_back(name);
  }
}

void read_attribute(Message attribute, ChakraNode& node) {
  std::string name;
  std::optional<AttributeValue> value;
  while (attribute.next()) {
    if (attribute.field() == attribute_field::name && attribute.is_text()) name = attribute.text();
    if (attribute.field() >= attribute_field::first_value) value = value_of(attribute);
  }
  if (value) set_attribute(attribute, name, *value, node);
}

// Reads repeated numbers, which are packed or given one by one.
void read_deps(Message& field, std::vector<std::uint64_t>& deps) {
  if (!field.is_text()) return deps.push_back(field.number());
  for (Message packed = field.message(); !packed.is_at_end();) deps.push_back(packed.varint());
}

ChakraNode read_node(Message message) {
  ChakraNode node;
  while (message.next()) {
    switch (message.field()) {
      case node_field::id:
        node.id = message.number();
        break;
      case node_field::name:
        node.name = message.text();
        break;
      case node_field::type:
        node.type = static_cast<std::int64_t>(message.number());
        break;
      case node_field::ctrl_deps:
      case node_field::data_deps:
        read_deps(message, node.deps);
        break;
      case node_field::duration:
        node.duration_us = duration_of(message, static_cast<double>(message.number()));
        break;
      case node_field::attribute:
        if (message.is_text()) read_attribute(message.message(), node);
        break;
      default:
        break;
    }
  }
  return node;
}

// Reads messages, each of which follows its length.
class Messages {
 public:
  explicit Messages(ByteSource& source) : source_(source) {}

  // The bytes of the next message; nothing at the end of the file.
  std::optional<std::string_view> next() {
    held_.erase(0, used_);
    used_ = 0;
    if (!fill(1)) return std::nullopt;
    std::uint64_t length = 0;
    std::size_t at = 0;
    for (int shift = 0;; shift += 7) {
      if (!fill(at + 1)) fail("ends in the middle of a length");
      const auto byte = static_cast<unsigned char>(held_[at++]);
      if (shift < 64) length |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) break;
      if (shift > 56) fail("a length has more than nine bytes");
    }
    if (length > kMostMessage) fail(fmt::format("a message of {} bytes", length));
    if (!fill(at + length)) fail(fmt::format("a message of {} bytes ends beyond the file", length));
    begin_ = position_ + static_cast<std::int64_t>(at);
    used_ = at + length;
    position_ += static_cast<std::int64_t>(used_);
    return std::string_view(held_).substr(at, length);
  }
  std::int64_t begin() const { return begin_; }

 private:
  bool fill(std::size_t count) {
    while (held_.size() < count) {
      const std::string_view piece = source_.next();
      if (piece.empty()) return false;
      held_ += piece;
    }
    return true;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(
        {problem_at(source_.name(), {.byte = position_}, message + ": is no Chakra trace, or a damaged one")});
  }

  ByteSource& source_;
  std::string held_;
  std::size_t used_ = 0;
  std::int64_t position_ = 0, begin_ = 0;
};

}  // namespace

bool is_chakra_file(const std::filesystem::path& file) {
  std::filesystem::path name = file.filename();
  if (name.extension() == ".gz") name = name.stem();
  return name.extension() == ".et";
}

std::vector<ChakraNode> read_chakra_messages(const std::filesystem::path& file) {
  ByteSource source(file);
  Messages messages(source);
  std::vector<ChakraNode> nodes;
  const std::string name = file.string();
  bool is_first = true;
  while (const auto bytes = messages.next()) {
    Message message(*bytes, messages.begin(), name);
    if (std::exchange(is_first, false)) {  // what the trace says of itself
      while (message.next()) continue;
      continue;
    }
    nodes.push_back(read_node(message));
    nodes.back().place = {.byte = messages.begin()};
    if (nodes.back().type == 0) message.fail("a node has no type");
    if (nodes.size() > kMostNodes) message.fail("has more than 10 million nodes");
  }
  return nodes;
}

}  // namespace tandem
