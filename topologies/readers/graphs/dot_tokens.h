// The words of Graphviz' language, each with its place. For readers/dot_graph.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topologies/base/error.h"

namespace tandem {

struct DotToken {
  enum class Kind : std::uint8_t { word, mark, end };  // mark: { } [ ] = ; , : + -- ->
  Kind kind = Kind::end;
  bool is_quoted = false;  // a word in quotes, which is no keyword
  std::string text{};
  FilePlace place{.line = 1, .column = 1};

  bool is(std::string_view mark) const { return kind == Kind::mark && text == mark; }
  bool is_keyword(std::string_view word) const;  // in any case
};

class DotTokens {
 public:
  // Both must outlive this.
  DotTokens(std::string_view text, const std::string& file);

  const DotToken& peek() const { return token_; }
  // Returns the token and goes to the next one. Throws InputError where the text has none.
  DotToken take();
  [[noreturn]] void fail(const FilePlace& place, const std::string& message) const;
  // Refuses the current token.
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  char at(std::size_t offset) const { return at_ + offset < text_.size() ? text_[at_ + offset] : '\0'; }
  bool is_at_end() const { return at_ >= text_.size(); }
  void advance(std::size_t count);
  void skip_blanks();
  void skip_to(std::string_view end, const char* what);
  DotToken next();
  void read_quoted(DotToken& token);
  void read_html(DotToken& token);
  void read_word(DotToken& token);

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  FilePlace place_{.line = 1, .column = 1};
  DotToken token_;
};

}  // namespace tandem
