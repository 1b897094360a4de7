#include "topologies/base/json_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tandem {
namespace {

constexpr int kEndOfFile = -1;
constexpr std::size_t kMostDigits = 1000;

std::string shown_byte(int character) {
  if (character < 0x20 || character > 0x7e) return fmt::format("byte 0x{:02x}", character);
  return fmt::format("'{}'", static_cast<char>(character));
}

bool is_of_number(int c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

std::size_t digits_from(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

// strtod and from_chars read more forms than JSON has, such as 01 and 1.
bool is_number_of_json(std::string_view text) {
  const std::size_t begin = text.starts_with('-') ? 1 : 0;
  std::size_t at = digits_from(text, begin);
  if (at == begin || (text[begin] == '0' && at > begin + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = digits_from(text, at + 1);
    if (end == at + 1) return false;
    at = end;
  }
  if (at == text.size()) return true;
  if (text[at] != 'e' && text[at] != 'E') return false;
  const std::size_t exponent = at + 1 + (text.substr(at + 1).find_first_of("+-") == 0 ? 1 : 0);
  return exponent < text.size() && digits_from(text, exponent) == text.size();
}

bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

JsonStream::JsonStream(std::string file, std::function<std::string_view()> next_piece)
    : file_(std::move(file)), next_piece_(std::move(next_piece)) {
  skip_mark();
}

JsonStream::JsonStream(std::string file, std::string_view text, FilePlace place)
    : file_(std::move(file)),
      next_piece_([text, given = false]() mutable { return std::exchange(given, true) ? std::string_view() : text; }),
      at_line_(place.line),
      at_column_(place.column),
      line_(place.line),
      column_(place.column) {
  skip_mark();
}

void JsonStream::skip_mark() {
  if (peek() != 0xef) return;
  for (const int expected : {0xef, 0xbb, 0xbf}) {
    if (take() != expected) fail("is no JSON: begins with unknown bytes");
  }
  at_column_ = column_;
}

FilePlace JsonStream::here() const {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return {.line = static_cast<int>(std::min(at_line_, kMost)), .column = static_cast<int>(std::min(at_column_, kMost))};
}

void JsonStream::fail(const std::string& message) const {
  throw InputError({{file_, line_, column_, "", message}});
}

void JsonStream::refuse(const std::string& expected, int found) const {
  if (found == kEndOfFile) end_early(expected + " is missing");
  const bool is_first = open_.empty() && wants_ == Wants::value;
  fail(fmt::format("{}expected {}, found {}", is_first ? "is not JSON: " : "", expected, shown_byte(found)));
}

void JsonStream::end_early(const std::string& where) const {
  throw InputError({{file_, here().line, here().column, "",
                     fmt::format("the file ends too early ({}): it was cut short, or is still being written", where)}});
}

int JsonStream::refill() {
  if (is_done_) return kEndOfFile;
  piece_ = next_piece_();
  at_ = 0;
  is_done_ = piece_.empty();
  return is_done_ ? kEndOfFile : static_cast<unsigned char>(piece_[0]);
}

int JsonStream::take() {
  const int character = peek();
  if (character == kEndOfFile) return character;
  ++at_;
  ++at_column_;
  if (character == '\n') {
    ++at_line_;
    at_column_ = 1;
  }
  return character;
}

void JsonStream::skip_blanks() {
  for (int c = peek(); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = peek()) take();
}

void JsonStream::after_value() {
  wants_ = open_.empty() ? Wants::nothing : Wants::comma_or_end;
}

JsonPart JsonStream::next() {
  text_.clear();
  while (true) {
    skip_blanks();
    line_ = here().line;
    column_ = here().column;
    const int first = peek();
    switch (wants_) {
      case Wants::nothing:
        if (first == kEndOfFile) return part_ = JsonPart::end;
        refuse("the end of the file after the document", first);
      case Wants::comma_or_end:
        if (first == '}' || first == ']') return part_ = close(static_cast<char>(take()));
        if (first != ',') refuse("',' or the end of the list", first);
        take();
        wants_ = open_.back() == '{' ? Wants::key : Wants::value;
        continue;
      case Wants::colon:
        if (first != ':') refuse("':' after a key", first);
        take();
        wants_ = Wants::value;
        continue;
      case Wants::key_or_end:
        if (first == '}') return part_ = close(static_cast<char>(take()));
        [[fallthrough]];
      case Wants::key:
        if (first != '"') refuse("a key in quotes", first);
        string();
        wants_ = Wants::colon;
        return part_ = JsonPart::key;
      case Wants::value_or_end:
        if (first == ']') return part_ = close(static_cast<char>(take()));
        [[fallthrough]];
      case Wants::value:
        return part_ = value(first);
    }
  }
}

JsonPart JsonStream::begin(char bracket) {
  take();
  if (open_.size() >= kMostDepth) fail(fmt::format("is nested deeper than {} levels", kMostDepth));
  open_.push_back(bracket);
  wants_ = bracket == '{' ? Wants::key_or_end : Wants::value_or_end;
  return bracket == '{' ? JsonPart::begin_object : JsonPart::begin_array;
}

JsonPart JsonStream::close(char bracket) {
  if ((open_.back() == '{') != (bracket == '}')) {
    fail(fmt::format("'{}' does not close the '{}' before it", bracket, open_.back()));
  }
  open_.pop_back();
  after_value();
  return bracket == '}' ? JsonPart::end_object : JsonPart::end_array;
}

JsonPart JsonStream::value(int first) {
  if (first == '{' || first == '[') return begin(static_cast<char>(first));
  JsonPart found = JsonPart::string;
  if (first == '"') {
    string();
  } else if (first == '-' || (first >= '0' && first <= '9')) {
    found = numeral();
  } else if (is_letter(first)) {
    found = word();
  } else {
    refuse("a value", first);
  }
  after_value();
  return found;
}

JsonPart JsonStream::numeral() {
  while (is_of_number(peek()) && text_.size() < kMostDigits) text_ += static_cast<char>(take());
  if (text_ == "-" && peek() == 'I') return word();  // Python writes -Infinity
  if (is_number_of_json(text_)) return JsonPart::number;
  if (peek() == kEndOfFile) end_early(fmt::format("after '{}'", text_));
  fail(fmt::format("'{}' is no number of JSON", text_));
}

JsonPart JsonStream::word() {
  while (is_letter(peek()) && text_.size() < 16) text_ += static_cast<char>(take());
  if (text_ == "true" || text_ == "false") return JsonPart::boolean;
  if (text_ == "null") return JsonPart::null;
  if (text_ == "NaN" || text_ == "Infinity" || text_ == "-Infinity") return JsonPart::number;
  if (peek() == kEndOfFile) end_early(fmt::format("after '{}'", text_));
  fail(fmt::format("'{}' is no word of JSON: expected true, false or null", text_));
}

double JsonStream::number() const {
  return std::strtod(text_.c_str(), nullptr);
}

double JsonStream::finite_number() const {
  const double value = number();
  if (std::isfinite(value)) return value;
  fail(is_number_of_json(text_) ? "is a number that is too large" : fmt::format("'{}' is no number of JSON", text_));
}

void JsonStream::string() {
  take();
  first_half_ = 0;
  while (true) {
    // Most strings have no escape: copies as much as there is.
    std::size_t to = at_;
    while (to < piece_.size() && piece_[to] != '"' && piece_[to] != '\\' &&
           static_cast<unsigned char>(piece_[to]) >= 0x20) {
      ++to;
    }
    text_.append(piece_.substr(at_, to - at_));
    at_column_ += static_cast<std::int64_t>(to - at_);
    at_ = to;
    if (text_.size() > kMostText) fail(fmt::format("a string of more than {} MiB", kMostText >> 20));
    const int c = peek();
    if (c == kEndOfFile) end_early("in a string");
    if (c == '"') break;
    if (c == '\\') {
      escape();
    } else if (c < 0x20) {
      if (c != '\t') fail("a string has no end in its line");
      text_ += static_cast<char>(take());
    }
  }
  take();
}

void JsonStream::escape() {
  take();
  const int c = take();
  switch (c) {
    case '"':
    case '\\':
    case '/':
      text_ += static_cast<char>(c);
      return;
    case 'b':
      text_ += '\b';
      return;
    case 'f':
      text_ += '\f';
      return;
    case 'n':
      text_ += '\n';
      return;
    case 'r':
      text_ += '\r';
      return;
    case 't':
      text_ += '\t';
      return;
    case 'u':
      return add_utf8(hex4());
    case kEndOfFile:
      end_early("in a string");
    default:
      fail(fmt::format("a string has an unknown escape: '\\' and {}", shown_byte(c)));
  }
}

unsigned JsonStream::hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i) {
    const int c = take();
    if (c == kEndOfFile) end_early("in a string");
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) fail("'\\u' in a string needs four hexadecimal digits");
    code = code * 16 + static_cast<unsigned>(digit);
  }
  return code;
}

// Characters beyond U+FFFF are written as two halves, of which each is kept until the other one follows. A half alone
// is not UTF-8.
void JsonStream::add_utf8(unsigned code) {
  const auto continuation = [](unsigned bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
  const bool is_second = code >= 0xdc00 && code < 0xe000 && first_half_ > 0 && text_.size() == first_half_end_;
  if (is_second) {
    text_.resize(text_.size() - 3);
    code = 0x10000 + ((first_half_ - 0xd800) << 10) + (code - 0xdc00);
  }
  if (code < 0x80) {
    text_ += static_cast<char>(code);
  } else if (code < 0x800) {
    text_ += static_cast<char>(0xc0 | (code >> 6));
    text_ += continuation(code);
  } else if (code < 0x10000) {
    text_ += static_cast<char>(0xe0 | (code >> 12));
    text_ += continuation(code >> 6);
    text_ += continuation(code);
  } else {
    text_ += static_cast<char>(0xf0 | (code >> 18));
    text_ += continuation(code >> 12);
    text_ += continuation(code >> 6);
    text_ += continuation(code);
  }
  first_half_ = code >= 0xd800 && code < 0xdc00 ? code : 0;
  first_half_end_ = text_.size();
}

void JsonStream::skip() {
  if (part_ == JsonPart::key) next();
  if (part_ != JsonPart::begin_object && part_ != JsonPart::begin_array) return;
  const std::size_t outside = depth() - 1;
  while (depth() > outside) next();
}

}  // namespace tandem
