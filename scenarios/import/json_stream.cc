#include "scenarios/import/json_stream.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr int kEndOfFile = -1;

std::string shown(int character) {
  if (character < 0x20 || character > 0x7e) return fmt::format("byte 0x{:02x}", character);
  return fmt::format("'{}'", static_cast<char>(character));
}

bool is_of_number(int c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

bool is_of_word(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

JsonStream::JsonStream(ByteSource& source) : source_(source) {
  // A byte order mark.
  if (peek() == 0xef) {
    for (const int expected : {0xef, 0xbb, 0xbf}) {
      if (take() != expected) fail("is no JSON: begins with unknown bytes");
    }
  }
  at_column_ = 1;
}

void JsonStream::fail(const std::string& message) const {
  throw InputError({{source_.name(), line_, column_, "", message}});
}

void JsonStream::refuse(const std::string& expected, int found) const {
  if (found == kEndOfFile) end_early(expected + " is missing");
  fail(fmt::format("expected {}, found {}", expected, shown(found)));
}

void JsonStream::end_early(const std::string& where) const {
  throw InputError({{source_.name(), at_line_, at_column_, "",
                     fmt::format("the file ends too early ({}): it was cut short, or is still being written", where)}});
}

int JsonStream::refill() {
  if (is_done_) return kEndOfFile;
  piece_ = source_.next();
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
    line_ = at_line_;
    column_ = at_column_;
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
  } else if (is_of_word(first)) {
    found = word();
  } else {
    refuse("a value", first);
  }
  after_value();
  return found;
}

JsonPart JsonStream::numeral() {
  while (is_of_number(peek()) && text_.size() < 64) text_ += static_cast<char>(take());
  if (text_ == "-" && peek() == 'I') return word();  // Python writes -Infinity
  char* end = nullptr;
  std::strtod(text_.c_str(), &end);
  if (*end != '\0' && peek() == kEndOfFile) end_early(fmt::format("after '{}'", text_));
  if (*end != '\0') fail(fmt::format("'{}' is no number", text_));
  return JsonPart::number;
}

JsonPart JsonStream::word() {
  while (is_of_word(peek()) && text_.size() < 16) text_ += static_cast<char>(take());
  if (text_ == "true" || text_ == "false") return JsonPart::boolean;
  if (text_ == "null") return JsonPart::null;
  if (text_ == "NaN" || text_ == "Infinity" || text_ == "-Infinity") return JsonPart::number;
  if (peek() == kEndOfFile) end_early(fmt::format("after '{}'", text_));
  fail(fmt::format("'{}' is no word of JSON: expected true, false or null", text_));
}

double JsonStream::number() const {
  return std::strtod(text_.c_str(), nullptr);
}

void JsonStream::string() {
  take();
  while (true) {
    // Most strings have no escape: copies as much as there is.
    std::size_t to = at_;
    while (to < piece_.size() && piece_[to] != '"' && piece_[to] != '\\' &&
           static_cast<unsigned char>(piece_[to]) >= 0x20) {
      ++to;
    }
    text_.append(piece_.substr(at_, to - at_));
    at_column_ += static_cast<int>(to - at_);
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
      fail(fmt::format("a string has an unknown escape: '\\' and {}", shown(c)));
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

// Halves of surrogate pairs are kept apart: nothing here prints them.
void JsonStream::add_utf8(unsigned code) {
  if (code < 0x80) {
    text_ += static_cast<char>(code);
  } else if (code < 0x800) {
    text_ += static_cast<char>(0xc0 | (code >> 6));
    text_ += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text_ += static_cast<char>(0xe0 | (code >> 12));
    text_ += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    text_ += static_cast<char>(0x80 | (code & 0x3f));
  }
}

void JsonStream::skip() {
  if (part_ == JsonPart::key) next();
  if (part_ != JsonPart::begin_object && part_ != JsonPart::begin_array) return;
  const std::size_t outside = depth() - 1;
  while (depth() > outside) next();
}

}  // namespace tandem
