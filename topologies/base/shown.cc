#include "topologies/base/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "topologies/base/utf8.h"

namespace tandem {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the code point of a whole character.
std::uint32_t code_point(std::string_view character) {
  if (character.size() == 1) return static_cast<unsigned char>(character.front());
  std::uint32_t code = static_cast<unsigned char>(character.front()) & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

// C0, DEL and C1; marks, embeddings and isolates of the bidirectional algorithm; separators of lines and paragraphs;
// the byte order mark.
bool is_control(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return true;
  if (code == 0x061C || code == 0x200E || code == 0x200F || code == 0xFEFF) return true;
  return (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string escape_of(std::uint32_t code) {
  switch (code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return code < 0x7F ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

std::string without_controls(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, size));
    text.remove_prefix(character.size());
    const std::uint32_t code = code_point(character);
    if (size == 0) {
      result += fmt::format("\\x{:02x}", code);
    } else if (is_control(code) && (code >= 0x80 || kept.find(character) == std::string_view::npos)) {
      result += escape_of(code);
    } else {
      result += character;
    }
  }
  return result;
}

// Returns whether "##" is followed by a word and a bracket, as in the commands of GitHub, Azure and TeamCity.
bool is_bracket_command(std::string_view text) {
  if (!text.starts_with("##")) return false;
  text.remove_prefix(2);
  while (!text.empty() && is_letter(text.front())) text.remove_prefix(1);
  return text.starts_with('[');
}

// GitHub takes "::" for a command after blanks, too, and "##[" anywhere.
std::string without_commands(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  bool is_at_begin = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = std::string_view(text).substr(at);
    if (is_at_begin && rest.starts_with("::")) result += '\\';
    if (is_bracket_command(rest)) {
      result += "#\\";
      ++at;
    }
    const char c = text[at];
    is_at_begin = c == '\n' || (is_at_begin && (c == ' ' || c == '\t'));
    result += c;
  }
  return result;
}

std::string with_entities(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const std::string_view entity = c == '&'    ? "&amp;"
                                    : c == '<'  ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '"'  ? "&quot;"
                                    : c == '\'' ? "&#39;"
                                                : "";
    if (entity.empty()) {
      result += c;
    } else {
      result += entity;
    }
  }
  return result;
}

}  // namespace

std::string shown(std::string_view text) {
  return without_controls(text, "");
}

std::string shown_text(std::string_view text) {
  return without_controls(text, "\n\t");
}

std::string xml_name(std::string_view text) {
  return with_entities(shown(text));
}

std::string xml_text(std::string_view text) {
  return with_entities(shown_text(text));
}

std::string shown_output(std::string_view text) {
  return without_commands(shown_text(text));
}

}  // namespace tandem
