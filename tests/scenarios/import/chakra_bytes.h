// Makes Chakra's execution traces: messages of protocol buffers with their lengths.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::chakra_bytes {

// Protobuf by hand: fields and messages with their lengths.
inline std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}
inline std::string number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
inline std::string text(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}
inline std::string attribute(const std::string& name, int field, std::uint64_t value) {
  return text(10, text(1, name) + number(field, value));
}
inline std::string framed(const std::string& message) {
  return varint(message.size()) + message;
}
inline const std::string kMetadata = framed(text(1, "0.0.4"));

inline std::string compute(std::uint64_t id, std::uint64_t us, const std::string& more = "") {
  return framed(number(1, id) + text(2, "gemm") + number(3, 4) + number(7, us) + attribute("is_cpu_op", 27, 0) + more);
}
inline std::string sum(std::uint64_t id, std::uint64_t bytes, const std::string& more = "") {
  return framed(number(1, id) + text(2, "sum") + number(3, 7) + attribute("is_cpu_op", 27, 0) +
                attribute("comm_type", 9, 0) + attribute("comm_size", 13, bytes) + more);
}

// A send to, or a receive from, another rank.
inline std::string exchange(std::uint64_t id, bool sends, int peer, std::uint64_t bytes, const std::string& more = "") {
  return framed(number(1, id) + text(2, sends ? "send" : "receive") + number(3, sends ? 5 : 6) +
                attribute("is_cpu_op", 27, 0) + attribute("comm_size", 9, bytes) +
                attribute(sends ? "comm_dst" : "comm_src", 7, static_cast<std::uint64_t>(peer)) + more);
}

}  // namespace tandem::chakra_bytes
