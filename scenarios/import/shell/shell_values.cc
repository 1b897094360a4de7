#include "scenarios/import/shell/shell_values.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "scenarios/import/shell/shell_arithmetic.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Quote = ShellPiece::Quote;

constexpr std::size_t kMostHeld = std::size_t{1} << 20;
constexpr std::size_t kLongestMatched = 1024;
constexpr int kDeepestExpansion = 32;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::size_t held_bytes(const std::vector<ShellWord>& words) {
  std::size_t bytes = 0;
  for (const ShellWord& word : words) bytes += word.text.size() + word.shown.size() + sizeof(ShellWord);
  return bytes;
}

// Removes the shortest or longest part that matches a pattern from the beginning or the end.
std::string without_match(const std::string& text, const std::string& pattern, bool at_begin, bool longest) {
  if (text.size() > kLongestMatched) return text;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    const std::string part = at_begin ? text.substr(0, length) : text.substr(text.size() - length);
    if (!matches_shell_glob(part, pattern)) continue;
    return at_begin ? text.substr(length) : text.substr(0, text.size() - length);
  }
  return text;
}

}  // namespace

bool is_shell_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool matches_shell_glob(const std::string& text, const std::string& pattern) {
  constexpr int kMostStars = 8;
  const bool is_long = text.size() > kLongestMatched || pattern.size() > kLongestMatched ||
                       std::count(pattern.begin(), pattern.end(), '*') > kMostStars;
  return !is_long && fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Expands one word.
class ShellExpansion {
 public:
  ShellExpansion(const ShellValues& values, const ShellToken& token, bool divides, int depth = 0)
      : values_(values), token_(token), divides_(divides), depth_(depth) {}

  std::vector<ShellWord> all() {
    for (const ShellPiece& piece : token_.pieces) {
      if (piece.quote != Quote::bare) begin();
      if (piece.quote == Quote::literal) {
        add(piece.text);
      } else {
        expand(piece.text, piece.quote == Quote::double_quotes);
      }
    }
    if (has_empty_list_ && word_.shown.empty()) is_open_ = false;
    end();
    return std::move(words_);
  }

 private:
  struct Value {
    std::vector<ShellWord> words{};
    bool is_list = false;  // of "${NAME[@]}"
  };

  void begin() {
    if (is_open_) return;
    is_open_ = true;
    word_ = {.line = token_.line, .column = token_.column};
    word_.is_quoted = std::any_of(token_.pieces.begin(), token_.pieces.end(),
                                  [](const ShellPiece& piece) { return piece.quote != Quote::bare; });
  }
  void end() {
    if (is_open_) words_.push_back(std::move(word_));
    is_open_ = false;
  }
  void add(std::string_view text) {
    begin();
    count(text.size());
    word_.text += text;
    word_.shown += text;
  }
  void add(const ShellWord& value) {
    begin();
    count(value.shown.size());
    word_.text += value.text;
    word_.shown += value.shown;
    word_.is_unknown |= value.is_unknown;
  }

  void count(std::size_t bytes) {
    expanded_ += bytes;
    if (expanded_ > kMostHeld) values_.fail_size(token_.line, token_.column);
  }

  void expand(std::string_view raw, bool is_quoted) {
    for (std::size_t i = 0; i < raw.size();) {
      if (raw[i] != '$' || i + 1 >= raw.size()) {
        add(raw.substr(i, 1));
        ++i;
        continue;
      }
      const std::size_t length = reference(raw.substr(i));
      if (length < 2) {
        add("$");
        ++i;
        continue;
      }
      put(value_of(raw.substr(i, length)), is_quoted);
      i += length;
    }
  }

  // Returns the length of "$NAME", "${...}", "$(...)" or "$1" at the beginning of a text.
  static std::size_t reference(std::string_view text) {
    if (text[1] == '{' || text[1] == '(') {
      const char open = text[1], close = open == '{' ? '}' : ')';
      int depth = 0;
      for (std::size_t i = 1; i < text.size(); ++i) {
        if (text[i] == open) ++depth;
        if (text[i] == close && --depth == 0) return i + 1;
      }
      return text.size();
    }
    if (std::isdigit(static_cast<unsigned char>(text[1])) != 0 ||
        std::string_view("@*#?$!-").find(text[1]) != std::string_view::npos)
      return 2;
    std::size_t end = 1;
    while (end < text.size() && is_name_character(text[end])) ++end;
    return end;
  }

  void put(const Value& value, bool is_quoted) {
    if (is_quoted || !divides_) {
      has_empty_list_ |= divides_ && value.is_list && value.words.empty();
      for (std::size_t i = 0; i < value.words.size(); ++i) {
        if (i > 0 && value.is_list && divides_) {
          end();
        } else if (i > 0) {
          add(" ");
        }
        add(value.words[i]);
        if (value.is_list && value.words[i].line > 0) place_at(value.words[i]);
      }
      return;
    }
    for (std::size_t i = 0; i < value.words.size(); ++i) {
      if (i > 0) end();
      divide(value.words[i], value.is_list);
    }
  }
  void place_at(const ShellWord& word) {
    if (word_.text != word.text) return;
    word_.line = word.line;
    word_.column = word.column;
    word_.is_quoted = word.is_quoted;
  }

  void divide(const ShellWord& value, bool is_element) {
    if (!value.is_complete()) return divide_open(value);
    const std::string_view text = value.text;
    for (std::size_t i = 0; i < text.size();) {
      const bool is_blank = std::isspace(static_cast<unsigned char>(text[i])) != 0;
      const std::size_t next =
          std::min(is_blank ? text.find_first_not_of(" \t\r\n", i) : text.find_first_of(" \t\r\n", i), text.size());
      if (is_blank) {
        end();
      } else {
        add(text.substr(i, next - i));
        const bool is_part = is_element || value.text.size() > next - i;
        if (is_part && word_.text.size() == next - i && value.line > 0) place_in(value);
      }
      i = next;
    }
  }
  // Divides a text with names of variables in it, but not within the brackets of one.
  void divide_open(const ShellWord& value) {
    const std::string_view shown = value.shown;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= shown.size(); ++i) {
      const char c = i < shown.size() ? shown[i] : ' ';
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
      if (std::isspace(static_cast<unsigned char>(c)) == 0 || (depth > 0 && i < shown.size())) continue;
      if (i > begin) add(part_of(shown.substr(begin, i - begin)));
      if (i < shown.size()) end();
      begin = i + 1;
    }
  }
  static ShellWord part_of(std::string_view shown) {
    ShellWord part;
    part.shown = shown;
    part.is_unknown = shown.find("$(") != std::string_view::npos;
    if (shown.find('$') == std::string_view::npos) part.text = shown;
    return part;
  }

  void place_in(const ShellWord& value) {
    word_.line = value.line;
    word_.column = value.column;
  }

  Value unset(std::string_view raw) const {
    ShellWord word{.line = token_.line, .column = token_.column};
    word.shown = raw;
    return {{word}};
  }
  Value unknown(std::string_view raw) const {
    Value value = unset(raw);
    value.words.front().is_unknown = true;
    return value;
  }
  static Value known(const std::string& text) { return {{ShellWord{.text = text, .shown = text}}}; }

  Value value_of(std::string_view raw) const {
    if (raw.starts_with("$((")) {
      const std::string_view inside = raw.substr(3, raw.size() < 5 ? 0 : raw.size() - 5);
      const auto value = values_.arithmetic(text_of(inside));
      return value ? known(std::to_string(*value)) : unknown(raw);
    }
    if (raw.starts_with("$(")) return printed(raw);
    if (raw == "$#") return known("0");
    if (raw == "$?") return known("0");
    if (raw == "$@" || raw == "$*") return {.is_list = true};
    if (!raw.starts_with("${")) return variable(std::string(raw.substr(1)), raw);
    return parameter(raw.substr(2, raw.size() - 3), raw);
  }

  // What `expr` and `echo` print; other programs are not run.
  Value printed(std::string_view raw) const {
    std::string inside(raw.substr(2, raw.size() < 3 ? 0 : raw.size() - 3));
    if (inside.starts_with("expr ")) {
      inside.erase(std::remove(inside.begin(), inside.end(), '\\'), inside.end());
      if (const auto value = values_.arithmetic(text_of(inside.substr(5)))) return known(std::to_string(*value));
    }
    if (inside.starts_with("echo ") && inside.find_first_of("|;&<>") == std::string::npos) {
      const ShellWord word = expanded(inside.substr(5));
      if (word.is_complete()) return {{word}};
    }
    return unknown(raw);
  }

  Value variable(const std::string& name, std::string_view raw) const {
    const std::vector<ShellWord>* words = values_.find(name);
    if (words == nullptr) return unset(raw);
    return words->empty() ? known("") : Value{{words->front()}};
  }

  // "NAME", "NAME[@]", "#NAME[@]", "NAME:-otherwise" and so on, which was between braces.
  Value parameter(std::string_view inside, std::string_view raw) const {
    const bool counts = inside.size() > 1 && inside.front() == '#';
    if (counts) inside.remove_prefix(1);
    std::size_t end = 0;
    while (end < inside.size() && is_name_character(inside[end])) ++end;
    if (end == 0 && !inside.empty()) end = 1;
    const std::string name(inside.substr(0, end));
    inside.remove_prefix(end);
    std::string index;
    if (inside.starts_with('[') && inside.find(']') != std::string_view::npos) {
      index = inside.substr(1, inside.find(']') - 1);
      inside.remove_prefix(index.size() + 2);
    }
    Value value = name == "@" || name == "*" ? Value{.is_list = true} : indexed(name, index, raw);
    if (counts) {
      const bool counts_characters = index.empty() && !value.is_list && !value.words.empty();
      const bool is_set = values_.find(name) != nullptr;
      return known(std::to_string(counts_characters ? value.words.front().text.size()
                                  : is_set          ? value.words.size()
                                                    : 0));
    }
    return inside.empty() ? value : changed(std::move(value), inside, raw);
  }

  Value indexed(const std::string& name, const std::string& index, std::string_view raw) const {
    const std::vector<ShellWord>* words = values_.find(name);
    if (words == nullptr || index.empty()) return variable(name, raw);
    if (index == "@" || index == "*") return {*words, true};
    const auto number = values_.arithmetic(text_of(index));
    if (!number || *number < 0 || *number >= static_cast<long long>(words->size())) return unset(raw);
    return {{(*words)[static_cast<std::size_t>(*number)]}};
  }

  Value changed(Value value, std::string_view operation, std::string_view raw) const {
    const bool is_empty =
        value.words.empty() || std::all_of(value.words.begin(), value.words.end(),
                                           [](const ShellWord& word) { return word.text.empty() && !word.is_unknown; });
    const bool with_colon = operation.starts_with(':');
    const std::string_view rest = operation.substr(with_colon ? 1 : 0);
    const char kind = rest.empty() ? '\0' : rest.front();
    if (kind == '-' || kind == '=' || kind == '?')
      return is_empty && kind != '?' ? Value{{expanded(rest.substr(1))}} : value;
    if (kind == '+') return is_empty ? known("") : Value{{expanded(rest.substr(1))}};
    if ((kind == '%' || kind == '#') && !with_colon && !value.words.empty()) {
      const bool longest = rest.size() > 1 && rest[1] == kind;
      const ShellWord& word = value.words.front();
      if (!word.is_complete()) return value;
      return known(without_match(word.text, text_of(rest.substr(longest ? 2 : 1)), kind == '#', longest));
    }
    return unknown(raw);
  }

  // Expands a text within a reference, as between double quotes.
  ShellWord expanded(std::string_view text) const {
    ShellToken token{.line = token_.line, .column = token_.column};
    std::string plain(text);
    std::erase_if(plain, [](char c) { return c == '"' || c == '\''; });
    token.pieces.push_back({.quote = Quote::double_quotes, .text = plain});
    if (depth_ >= kDeepestExpansion) return unknown(text).words.front();
    std::vector<ShellWord> words = ShellExpansion(values_, token, false, depth_ + 1).all();
    return words.empty() ? ShellWord{} : words.front();
  }
  std::string text_of(std::string_view text) const {
    return text.find('$') == std::string_view::npos ? std::string(text) : expanded(text).shown;
  }

  const ShellValues& values_;
  const ShellToken& token_;
  const bool divides_;
  const int depth_;
  bool is_open_ = false;
  bool has_empty_list_ = false;  // "$@" without arguments is no word
  ShellWord word_;
  std::vector<ShellWord> words_;
  std::size_t expanded_ = 0;  // bytes
};

void ShellValues::fail_size(int line, int column) const {
  throw InputError({{file_, line, column, "", "the variables of this script expand to more than 1 MiB"}});
}

void ShellValues::hold(std::size_t before, const std::vector<ShellWord>& words, int line, int column) {
  held_ += held_bytes(words);
  held_ -= before;
  if (held_ > kMostHeld) fail_size(line, column);
}

void ShellValues::set(const std::string& name, std::vector<ShellWord> words, int line, int column) {
  std::vector<ShellWord>& value = values_[name];
  hold(held_bytes(value), words, line, column);
  value = std::move(words);
}

void ShellValues::append(const std::string& name, std::vector<ShellWord> words, bool as_array, int line, int column) {
  std::vector<ShellWord>& value = values_[name];
  const std::size_t before = held_bytes(value);
  if (as_array) {
    value.insert(value.end(), words.begin(), words.end());
  } else if (!words.empty()) {
    if (value.empty()) value.push_back({.line = line, .column = column});
    value.front().text += words.front().text;
    value.front().shown += words.front().shown;
    value.front().is_unknown |= words.front().is_unknown;
  }
  hold(before, value, line, column);
}

const std::vector<ShellWord>* ShellValues::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<ShellWord> ShellValues::fields(const ShellToken& token) const {
  return ShellExpansion(*this, token, true).all();
}

ShellWord ShellValues::whole(const ShellToken& token) const {
  std::vector<ShellWord> words = ShellExpansion(*this, token, false).all();
  return words.empty() ? ShellWord{.line = token.line, .column = token.column} : words.front();
}

std::optional<long long> ShellValues::arithmetic(std::string_view expression) const {
  return shell_arithmetic(expression, [this](const std::string& name) -> std::optional<std::string> {
    const std::vector<ShellWord>* words = find(name);
    if (words == nullptr || words->empty() || !words->front().is_complete()) return std::nullopt;
    return words->front().text;
  });
}

}  // namespace tandem
