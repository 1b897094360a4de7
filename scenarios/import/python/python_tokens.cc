#include "scenarios/import/python/python_tokens.h"

#include <fmt/format.h>

#include <cctype>

#include "topologies/base/error.h"

namespace tandem {
namespace {

class PythonLexer {
 public:
  PythonLexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonLine> lines() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        next_line();
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        ++at_;
        step_over_newline();
      } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        ++at_;
      } else {
        token();
      }
    }
    end_line();
    if (!open_.empty()) fail(open_.back(), fmt::format("'{}' is not closed", open_.back().text));
    return std::move(lines_);
  }

 private:
  [[noreturn]] void fail(const PythonToken& at, const std::string& message) const {
    throw InputError({problem_at(file_, {.line = at.line, .column = at.column}, message)});
  }

  void step_over_newline() {
    ++at_;
    ++line_;
    begin_ = at_;
  }
  void next_line() {
    step_over_newline();
    if (open_.empty()) end_line();
  }
  void end_line() {
    if (!now_.tokens.empty()) lines_.push_back(std::move(now_));
    now_ = {};
  }

  PythonToken here(PythonToken::Kind kind) const {
    return {.kind = kind, .text = {}, .line = line_, .column = static_cast<int>(at_ - begin_) + 1};
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  void token() {
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    if (is_word(c)) return word();
    if (c == '"' || c == '\'') return quoted(here(PythonToken::Kind::text));
    PythonToken mark = here(PythonToken::Kind::mark);
    mark.text = c;
    ++at_;
    if (c == '(' || c == '[' || c == '{') open_.push_back(mark);
    if (c == ')' || c == ']' || c == '}') {
      if (open_.empty()) fail(mark, fmt::format("'{}' closes nothing", c));
      const char opened = open_.back().text.front();
      const char closing = opened == '(' ? ')' : opened == '[' ? ']' : '}';
      if (c != closing) fail(mark, fmt::format("'{}' closes a '{}'", c, opened));
      open_.pop_back();
    }
    now_.tokens.push_back(std::move(mark));
  }

  void number() {
    PythonToken token = here(PythonToken::Kind::number);
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool is_sign = (c == '-' || c == '+') && (token.text.ends_with('e') || token.text.ends_with('E'));
      if (!is_word(c) && c != '.' && !is_sign) break;
      if (c != '_') token.text += c;
      ++at_;
    }
    now_.tokens.push_back(std::move(token));
  }

  // A word just before a quote says how to read the text: r"...", f"...".
  void word() {
    PythonToken token = here(PythonToken::Kind::name);
    while (at_ < text_.size() && is_word(text_[at_])) token.text += text_[at_++];
    const bool is_prefix = token.text.size() <= 2 && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'');
    if (!is_prefix) {
      now_.tokens.push_back(std::move(token));
      return;
    }
    const bool is_made = token.text.find_first_of("fF") != std::string::npos;
    token.kind = is_made ? PythonToken::Kind::mark : PythonToken::Kind::text;  // f"..." is no literal
    token.text.clear();
    quoted(std::move(token));
    if (is_made) now_.tokens.back().text = "f\"";
  }

  void quoted(PythonToken token) {
    const char quote = text_[at_];
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_, 3) == three;
    at_ += is_long ? 3 : 1;
    while (true) {
      if (at_ >= text_.size() || (!is_long && text_[at_] == '\n')) fail(token, "the text does not end");
      if (is_long ? text_.substr(at_, 3) == three : text_[at_] == quote) break;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        token.text += text_[at_ + 1];
        if (text_[at_ + 1] == '\n') ++line_;
        at_ += 2;
        continue;
      }
      token.text += text_[at_];
      if (text_[at_] == '\n') {
        step_over_newline();
      } else {
        ++at_;
      }
    }
    at_ += is_long ? 3 : 1;
    now_.tokens.push_back(std::move(token));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0, begin_ = 0;  // begin_: of the line
  int line_ = 1;
  PythonLine now_;
  std::vector<PythonToken> open_;
  std::vector<PythonLine> lines_;
};

}  // namespace

std::vector<PythonLine> python_lines(std::string_view text, const std::string& file) {
  return PythonLexer(text, file).lines();
}

}  // namespace tandem
