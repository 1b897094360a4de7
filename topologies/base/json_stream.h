// Reads JSON as a stream of parts, each with its line and column. Files may be too large to hold in memory.
//
//   JsonStream json(source);
//   while (json.next() != JsonPart::end) if (json.part() == JsonPart::key && json.text() == "traceEvents") ...
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

enum class JsonPart : std::uint8_t {
  begin_object,
  end_object,
  begin_array,
  end_array,
  key,
  string,
  number,
  boolean,
  null,
  end  // of the document
};

class JsonStream {
 public:
  static constexpr std::size_t kMostDepth = 200;
  static constexpr std::size_t kMostText = std::size_t{64} << 20;

  // `next_piece` returns the next bytes of the file, which must live until its next call, and none at the end.
  JsonStream(std::string file, std::function<std::string_view()> next_piece);
  // The text of a file, or the part of it that begins at `place`. It must outlive the stream.
  JsonStream(std::string file, std::string_view text, FilePlace place = {.line = 1, .column = 1});
  // A source of bytes with name() and next(), which must outlive the stream.
  template <typename Source>
  explicit JsonStream(Source& source) : JsonStream(source.name(), [&source] { return source.next(); }) {}

  // Goes to the next part. Throws InputError with line and column where the text is no JSON, is nested deeper than
  // kMostDepth, or has a string longer than kMostText.
  JsonPart next();

  JsonPart part() const { return part_; }
  // Returns the text of a key or a string (without escapes), or a number or word as it is written. Valid until next().
  std::string_view text() const { return text_; }
  double number() const;  // of a number; also of a string that is one
  // Returns a number. Throws InputError where it is none of JSON (NaN, Infinity) or no double is so large.
  double finite_number() const;
  std::size_t depth() const { return open_.size(); }
  int line() const { return line_; }
  int column() const { return column_; }
  FilePlace place() const { return {.line = line_, .column = column_}; }
  const std::string& file() const { return file_; }

  // Goes past the value that begins with the current part, or past the value of the current key.
  void skip();
  // Throws InputError at the current part.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  enum class Wants : std::uint8_t { value, value_or_end, key, key_or_end, colon, comma_or_end, nothing };
  int peek() { return at_ < piece_.size() ? static_cast<unsigned char>(piece_[at_]) : refill(); }
  int refill();
  // Throw InputError where the file has something else than what is expected, or ends there.
  [[noreturn]] void refuse(const std::string& expected, int found) const;
  [[noreturn]] void end_early(const std::string& where) const;
  int take();
  void skip_mark();  // of the byte order
  void skip_blanks();
  JsonPart begin(char bracket);
  JsonPart close(char bracket);
  JsonPart value(int first);
  JsonPart word();
  JsonPart numeral();
  void string();
  void escape();
  unsigned hex4();
  void add_utf8(unsigned code);
  void after_value();
  FilePlace here() const;  // a line or column beyond the largest int counts as that

  std::string file_;
  std::function<std::string_view()> next_piece_;
  std::string_view piece_;
  std::size_t at_ = 0;
  bool is_done_ = false;
  std::int64_t at_line_ = 1, at_column_ = 1;  // a line may be longer than an int counts
  int line_ = 1, column_ = 1;
  JsonPart part_ = JsonPart::null;
  Wants wants_ = Wants::value;
  std::string text_;
  unsigned first_half_ = 0;  // of a surrogate pair, which ends text_ there; 0: none
  std::size_t first_half_end_ = 0;
  std::vector<char> open_;  // '{' and '['
};

}  // namespace tandem
