#include "scenarios/import/shell/shell_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "topologies/base/error.h"

namespace tandem {

bool ShellToken::is(std::string_view word) const {
  return mark == ShellMark::word && pieces.size() == 1 && pieces.front().quote == ShellPiece::Quote::bare &&
         pieces.front().text == word;
}

namespace {

using Quote = ShellPiece::Quote;

bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

class ShellLexer {
 public:
  ShellLexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ShellTokens all() {
    while (at_ < text_.size()) step();
    finish();
    push(ShellMark::end);
    push(ShellMark::end_of_file);
    return std::move(result_);
  }

 private:
  char peek(std::size_t ahead = 1) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = text_[at_];
    if (c == '\\') return escape();
    if (c == '\'') return single_quotes();
    if (c == '"') return double_quotes();
    if (c == '`') return backquotes();
    if (c == '$' && (peek() == '(' || peek() == '{')) return put(Quote::bare, enclosed());
    if (c == '$' && peek() == '\'' && !is_open_) return advance(1);
    if (c == '#' && !is_open_) return comment();
    if (is_shell_blank(c)) {
      finish();
      return advance(1);
    }
    if (std::string_view("\n;&|()<>").find(c) != std::string_view::npos) return operation(c);
    put(Quote::bare, std::string(1, c));
    advance(1);
  }

  // A line that ends with a backslash goes on, also where blanks have slipped behind it.
  void escape() {
    std::size_t next = at_ + 1;
    while (next < text_.size() && is_shell_blank(text_[next])) ++next;
    if (next >= text_.size() || text_[next] == '\n') return advance(static_cast<int>(next + 1 - at_));
    put(Quote::literal, std::string(1, peek()));
    advance(2);
  }

  [[noreturn]] void fail_open(char mark, int line, int column) const {
    throw InputError({{file_, line, column, "", fmt::format("a quoted text without its end, which is {}", mark)}});
  }

  void single_quotes() {
    open();
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) fail_open('\'', line_, column_);
    put(Quote::literal, std::string(text_.substr(at_ + 1, end - at_ - 1)));
    advance(static_cast<int>(end + 1 - at_));
  }

  void backquotes() {
    const std::size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) fail_open('`', line_, column_);
    put(Quote::bare, "$(" + std::string(text_.substr(at_ + 1, end - at_ - 1)) + ")");
    advance(static_cast<int>(end + 1 - at_));
  }

  void double_quotes() {
    open();
    const int line = line_, column = column_;
    put(Quote::double_quotes, "");
    advance(1);
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (c == '\\' && (peek() == '\n' || (peek() == '\r' && peek(2) == '\n'))) {
        put(Quote::double_quotes, " ");
        advance(peek() == '\n' ? 2 : 3);
      } else if (c == '\\' && std::string_view("\"\\$`").find(peek()) != std::string_view::npos) {
        put(Quote::literal, std::string(1, peek()));
        advance(2);
      } else if (c == '$' && (peek() == '(' || peek() == '{')) {
        put(Quote::double_quotes, enclosed());
      } else {
        put(Quote::double_quotes, std::string(1, c));
        advance(1);
      }
    }
    if (at_ >= text_.size()) fail_open('"', line, column);
    advance(1);
  }

  // Takes "$(...)" or "${...}" with everything in it, or the rest of the text if it does not end.
  std::string enclosed() {
    const char begin = peek(), end = begin == '(' ? ')' : '}';
    const std::size_t from = at_;
    int depth = 0;
    for (; at_ < text_.size(); advance(1)) {
      if (text_[at_] == '\\') {
        advance(1);
      } else if (text_[at_] == begin) {
        ++depth;
      } else if (text_[at_] == end && --depth == 0) {
        advance(1);
        break;
      }
    }
    return std::string(text_.substr(from, at_ - from));
  }

  void comment() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    if (line.starts_with("#SBATCH ")) {
      std::size_t begin = 8;
      while ((begin = line.find_first_not_of(" \t\r", begin)) != std::string_view::npos) {
        const std::size_t stop = std::min(line.find_first_of(" \t\r", begin), line.size());
        result_.batch_options.push_back({.pieces = {{.text = std::string(line.substr(begin, stop - begin))}},
                                         .line = line_,
                                         .column = static_cast<int>(begin) + 1});
        begin = stop;
      }
    }
    advance(static_cast<int>(end - at_));
  }

  void operation(char c) {
    if (c == '<' || c == '>') return redirect(c);
    if (c == '&' && peek() == '>') {
      finish();
      advance(1);
      return redirect('>');
    }
    if (c == '(') return open_bracket();
    finish();
    const bool is_twice = peek() == c;
    if (c == ')') {
      push(ShellMark::close);
    } else if (c == '\n') {
      push(ShellMark::end);
      advance(1);
      return skip_documents();
    } else if (c == ';') {
      push(is_twice ? ShellMark::case_end : ShellMark::end);
    } else if (c == '&') {
      push(is_twice ? ShellMark::and_if : ShellMark::end);
    } else {
      push(is_twice ? ShellMark::or_if : ShellMark::pipe);
    }
    const bool is_both = c == '|' && peek() == '&';  // |&
    advance((is_twice && c != ')') || is_both ? 2 : 1);
  }

  bool is_at_command() const {
    if (result_.tokens.empty()) return true;
    const ShellToken& last = result_.tokens.back();
    static constexpr std::array kBefore = {"if", "elif", "while", "until", "then", "else", "do", "!", "{", "for"};
    return last.mark != ShellMark::word ||
           std::any_of(kBefore.begin(), kBefore.end(), [&](const char* word) { return last.is(word); });
  }

  void open_bracket() {
    const bool is_array = is_open_ && word_.pieces.size() == 1 && word_.pieces.front().quote == Quote::bare &&
                          word_.pieces.front().text.ends_with('=');
    word_.begins_array = is_array;
    const bool was_open = is_open_;
    finish();
    if (!was_open && peek() == '(' && is_at_command()) {
      const std::size_t end = text_.find("))", at_);
      if (end != std::string_view::npos) {
        push(ShellMark::expression);
        result_.tokens.back().pieces.push_back({.text = std::string(text_.substr(at_ + 2, end - at_ - 2))});
        return advance(static_cast<int>(end + 2 - at_));
      }
    }
    push(ShellMark::open);
    advance(1);
  }

  // The file of a redirection is left out, and so are the lines of a here-document.
  void redirect(char c) {
    const bool is_number = is_open_ && word_.pieces.size() == 1 && !word_.pieces.front().text.empty() &&
                           std::all_of(word_.pieces.front().text.begin(), word_.pieces.front().text.end(),
                                       [](unsigned char d) { return std::isdigit(d) != 0; });
    if (is_number) is_open_ = false;
    finish();
    if (c == '<' && peek() == '<' && peek(2) != '<') {
      advance(2);
      if (at_ < text_.size() && text_[at_] == '-') advance(1);
      while (at_ < text_.size() && is_shell_blank(text_[at_])) advance(1);
      std::string word;
      for (; at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0 && text_[at_] != ';';
           advance(1)) {
        if (text_[at_] != '"' && text_[at_] != '\'' && text_[at_] != '\\') word += text_[at_];
      }
      if (!word.empty()) documents_.push_back(word);
      return;
    }
    while (at_ < text_.size() && std::string_view("<>&|").find(text_[at_]) != std::string_view::npos) advance(1);
    if (at_ < text_.size() && text_[at_] == '(') return put(Quote::bare, "$" + enclosed_bracket());
    drops_next_ = true;
  }
  std::string enclosed_bracket() {
    --at_;
    --column_;
    return enclosed().substr(1);
  }

  void skip_documents() {
    for (const std::string& word : documents_) {
      const int line = line_ - 1;
      bool has_flags = false;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view content = text_.substr(at_, end - at_);
        advance(static_cast<int>(end + 1 - at_));
        has_flags |= content.find("--num-layers") != std::string_view::npos;
        while (!content.empty() && is_shell_blank(content.front())) content.remove_prefix(1);
        while (!content.empty() && is_shell_blank(content.back())) content.remove_suffix(1);
        if (content == word) break;
      }
      if (has_flags) result_.documents_with_flags.push_back(line);
    }
    documents_.clear();
  }

  void open() {
    if (is_open_) return;
    is_open_ = true;
    word_ = {.line = line_, .column = column_};
  }
  void put(Quote quote, const std::string& text) {
    open();
    if (word_.pieces.empty() || word_.pieces.back().quote != quote) word_.pieces.push_back({.quote = quote});
    word_.pieces.back().text += text;
  }
  void finish() {
    if (is_open_ && !drops_next_) result_.tokens.push_back(word_);
    if (is_open_) drops_next_ = false;
    is_open_ = false;
  }
  void push(ShellMark mark) { result_.tokens.push_back({.mark = mark, .line = line_, .column = column_}); }
  void advance(int count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) {
      ++column_;
      if (text_[at_] != '\n') continue;
      ++line_;
      column_ = 1;
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
  bool is_open_ = false, drops_next_ = false;
  ShellToken word_;
  std::vector<std::string> documents_;  // the last lines of here-documents that begin in the next line
  ShellTokens result_;
};

}  // namespace

ShellTokens shell_tokens(std::string_view text, const std::string& file) {
  return ShellLexer(text, file).all();
}

std::optional<std::vector<ShellToken>> tokens_at(int line, int column, std::string_view text) {
  try {
    std::vector<ShellToken> tokens = shell_tokens(text, "").tokens;
    for (ShellToken& token : tokens) {
      token.line = line;
      token.column = column;
    }
    return tokens;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

}  // namespace tandem
