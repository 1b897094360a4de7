// What processes of one build send each other: values one after the other, as they lie in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

class ByteWriter {
 public:
  template <typename T>
  ByteWriter& put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  ByteWriter& put_text(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
    return *this;
  }
  template <typename T>
  ByteWriter& put_list(const std::vector<T>& values) {
    put(static_cast<std::uint64_t>(values.size()));
    for (const T& value : values) put(value);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::string get_text() { return std::string(take(static_cast<std::size_t>(get<std::uint64_t>()))); }
  template <typename T>
  std::vector<T> get_list() {
    std::vector<T> values(static_cast<std::size_t>(get<std::uint64_t>()));
    for (T& value : values) value = get<T>();
    return values;
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view take(std::size_t count) {
    TANDEM_CHECK(count <= left_.size(), "a message ends too early");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

}  // namespace tandem
