#include "topologies/readers/graphs/dot_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace tandem {
namespace {

bool is_digit_of_dot(char c) {
  return c >= '0' && c <= '9';
}

// Letters are also all bytes beyond ASCII.
bool is_of_identifier(char c) {
  return is_digit_of_dot(c) || c == '_' || std::isalpha(static_cast<unsigned char>(c)) != 0 ||
         static_cast<signed char>(c) < 0;
}

}  // namespace

bool DotToken::is_keyword(std::string_view word) const {
  return kind == Kind::word && !is_quoted &&
         std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

DotTokens::DotTokens(std::string_view text, const std::string& file) : text_(text), file_(file) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  token_ = next();
}

void DotTokens::fail(const FilePlace& place, const std::string& message) const {
  throw InputError({problem_at(file_, place, "not a graph in Graphviz' language: " + message)});
}

void DotTokens::refuse(const std::string& expected) const {
  const bool is_end = token_.kind == DotToken::Kind::end;
  fail(token_.place, is_end ? fmt::format("it is cut: {} is missing", expected)
                            : fmt::format("expected {}, found '{}'", expected, shortened(token_.text)));
}

DotToken DotTokens::take() {
  return std::exchange(token_, next());
}

void DotTokens::advance(std::size_t count) {
  for (; count > 0 && at_ < text_.size(); --count, ++at_) {
    ++place_.column;
    if (text_[at_] != '\n') continue;
    ++place_.line;
    place_.column = 1;
  }
}

void DotTokens::skip_to(std::string_view end, const char* what) {
  const FilePlace begin = place_;
  const std::size_t found = text_.find(end, at_);
  if (found == std::string_view::npos) fail(begin, fmt::format("{} without its end", what));
  advance(found + end.size() - at_);
}

// Lines that begin with # are those of a preprocessor.
void DotTokens::skip_blanks() {
  while (!is_at_end()) {
    const bool is_line = (place_.column == 1 && at(0) == '#') || (at(0) == '/' && at(1) == '/');
    if (is_line) {
      advance(std::min(text_.find('\n', at_), text_.size()) - at_);
    } else if (at(0) == '/' && at(1) == '*') {
      skip_to("*/", "a comment");
    } else if (std::isspace(static_cast<unsigned char>(at(0))) != 0) {
      advance(1);
    } else {
      return;
    }
  }
}

DotToken DotTokens::next() {
  skip_blanks();
  DotToken token;
  token.place = place_;
  if (is_at_end()) return token;
  token.kind = DotToken::Kind::word;
  if (at(0) == '"') {
    read_quoted(token);
  } else if (at(0) == '<') {
    read_html(token);
  } else if (is_of_identifier(at(0)) || (at(0) == '-' && (is_digit_of_dot(at(1)) || at(1) == '.')) || at(0) == '.') {
    read_word(token);
  } else {
    token.kind = DotToken::Kind::mark;
    const bool is_edge = at(0) == '-' && (at(1) == '-' || at(1) == '>');
    constexpr std::string_view kMarks = "{}[]=;,:+";
    if (!is_edge && kMarks.find(at(0)) == std::string_view::npos) {
      fail(place_, fmt::format("an unknown character '{}'", at(0)));
    }
    token.text = text_.substr(at_, is_edge ? 2 : 1);
    advance(token.text.size());
  }
  return token;
}

// A backslash at the end of a line goes on in the next one; \" is a quote, and any other \ is kept.
void DotTokens::read_quoted(DotToken& token) {
  token.is_quoted = true;
  advance(1);
  while (at(0) != '"' || is_at_end()) {
    if (is_at_end()) fail(token.place, "a text in quotes without its end");
    if (at(0) == '\\' && at(1) == '\n') {
      advance(2);
      continue;
    }
    if (at(0) == '\\' && (at(1) == '"' || at(1) == '\\')) {
      if (at(1) == '\\') token.text += '\\';
      advance(1);
    }
    token.text += at(0);
    advance(1);
  }
  advance(1);
}

void DotTokens::read_html(DotToken& token) {
  token.is_quoted = true;
  int depth = 0;
  do {
    if (is_at_end()) fail(token.place, "a text in < and > without its end");
    depth += at(0) == '<' ? 1 : at(0) == '>' ? -1 : 0;
    token.text += at(0);
    advance(1);
  } while (depth > 0);
}

// An identifier, or a number such as -.5.
void DotTokens::read_word(DotToken& token) {
  const bool is_number = is_digit_of_dot(at(0)) || at(0) == '-' || at(0) == '.';
  std::size_t size = 1;
  while (is_of_identifier(at(size)) || (is_number && at(size) == '.')) ++size;
  token.text = text_.substr(at_, size);
  advance(size);
}

}  // namespace tandem
