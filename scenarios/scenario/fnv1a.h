// The 64-bit FNV-1a hash. It tells contents apart, but protects against nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem {

class Fnv1a {
 public:
  void add(std::string_view text) {
    add_part(text);
    end_text();
  }
  // Adds a part of a text; end_text() must follow the last one.
  void add_part(std::string_view part) {
    for (const char c : part) add_byte(static_cast<unsigned char>(c));
  }
  void end_text() { add_byte(0xff); }  // not a byte of UTF-8: keeps "ab", "c" apart from "a", "bc"
  void add(std::int64_t number) { add(std::string_view(std::to_string(number))); }
  // 16 hexadecimal digits.
  std::string text() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(hash_ >> shift) & 0xf];
    return digits;
  }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace tandem
