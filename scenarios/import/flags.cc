#include "scenarios/import/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "scenarios/import/byte_source.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kMostScript = std::int64_t{4} << 20;
constexpr std::size_t kMostExpanded = std::size_t{1} << 20;
constexpr std::string_view kModelArguments = "MODEL_ARGS";

struct Word {
  std::string text;
  int line = 0, column = 0;
  bool is_quoted = false;
};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Splits a script into words: quotes, comments, and lines that go on.
class Words {
 public:
  Words(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Word> all() {
    while (at_ < text_.size()) step();
    finish();
    return std::move(words_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\' && at_ + 1 < text_.size()) {
      const bool goes_on = text_[at_ + 1] == '\n' || text_[at_ + 1] == '\r';
      if (!goes_on) put(text_[at_ + 1]);
      advance(2);
    } else if (c == '"' || c == '\'') {
      quote(c);
    } else if (c == '#' && !is_open_) {
      while (at_ < text_.size() && text_[at_] != '\n') advance(1);
    } else if (is_blank(c) || c == '\n' || c == ';' || ((c == '(' || c == ')') && !is_call(c))) {
      finish();
      if (!is_blank(c)) words_.push_back({.text = "", .line = line_, .column = column_});  // ends a flag's values
      advance(1);
    } else {
      put(c);
      advance(1);
    }
  }
  // "$(" and the brackets of an expression in a value belong to the word.
  bool is_call(char c) const {
    if (!is_open_ || word_.text.empty()) return false;
    return c == ')' ? std::count(word_.text.begin(), word_.text.end(), '(') > 0
                    : word_.text.back() == '$' || word_.text.back() == '(';
  }
  void quote(char mark) {
    open();
    word_.is_quoted = true;
    const int line = line_, column = column_;
    advance(1);
    while (at_ < text_.size() && text_[at_] != mark) {
      word_.text += text_[at_] == '\n' ? ' ' : text_[at_];
      advance(1);
    }
    if (at_ >= text_.size()) {
      throw InputError({{file_, line, column, "", fmt::format("a quoted text without its end, which is {}", mark)}});
    }
    advance(1);
  }
  void open() {
    if (is_open_) return;
    is_open_ = true;
    word_ = {.text = "", .line = line_, .column = column_};
  }
  void put(char c) {
    open();
    word_.text += c;
  }
  void finish() {
    if (is_open_) words_.push_back(word_);
    is_open_ = false;
  }
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
  bool is_open_ = false;
  Word word_;
  std::vector<Word> words_;
};

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

// Replaces $NAME, ${NAME} and ${NAME:-otherwise} by the values of variables; leaves unknown ones unchanged.
std::string expanded(const std::string& text, const std::map<std::string, std::string>& variables) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 >= text.size()) {
      result += text[i];
      continue;
    }
    const bool is_braced = text[i + 1] == '{';
    std::size_t end = i + (is_braced ? 2 : 1);
    const std::size_t begin = end;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    const auto found = variables.find(text.substr(begin, end - begin));
    std::string otherwise;
    const std::size_t close = is_braced ? text.find('}', end) : end;
    if (is_braced && close == std::string::npos) return result + text.substr(i);
    if (is_braced && text.compare(end, 2, ":-") == 0) otherwise = text.substr(end + 2, close - end - 2);
    if (found != variables.end()) {
      result += found->second;
    } else if (!otherwise.empty()) {
      result += otherwise;
    } else {
      result += text.substr(i, (is_braced ? close + 1 : end) - i);
    }
    i = (is_braced ? close + 1 : end) - 1;
  }
  return result;
}

std::string flag_name(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  std::string name(word);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_flag(const Word& word) {
  return !word.is_quoted && word.text.size() > 2 && word.text.starts_with("--") &&
         std::isalpha(static_cast<unsigned char>(word.text[2])) != 0;
}

void read_script(std::string_view text, Flags& flags) {
  std::vector<Word> words = Words(text, flags.file()).all();
  std::map<std::string, std::string> variables;
  std::size_t held = 0;  // bytes of variables
  Flag* open = nullptr;
  Flag current;
  const auto close = [&] {
    if (open != nullptr) flags.add(current);
    open = nullptr;
  };
  for (const Word& word : words) {
    const std::size_t equals = word.text.find('=');
    if (word.text.empty() && !word.is_quoted) {
      close();
    } else if (is_flag(word)) {
      close();
      current = {.name = flag_name(word.text.substr(0, equals)), .value = "", .line = word.line, .column = word.column};
      if (equals != std::string::npos) current.value = expanded(word.text.substr(equals + 1), variables);
      open = &current;
    } else if (equals != std::string::npos && is_variable_name(std::string_view(word.text).substr(0, equals))) {
      close();
      std::string& value = variables[word.text.substr(0, equals)];
      value = expanded(word.text.substr(equals + 1), variables);
      held += value.size();
      if (held > kMostExpanded) {
        throw InputError(
            {{flags.file(), word.line, word.column, "", "the variables of this script expand to more than 1 MiB"}});
      }
    } else if (open != nullptr) {
      const std::string value = expanded(word.text, variables);
      if (value.starts_with("$") || value.starts_with("--")) {
        // It is not known what a shell would put here, such as an array of further flags.
        if (current.value.empty() && word.is_quoted) continue;
      }
      current.value += (current.value.empty() ? "" : " ") + value;
    }
  }
  close();
  flags.environment = variables;
}

// One line "  key: value  # comment" of a map.
void read_entry(std::string_view line, int number, bool is_flag_map, Flags& flags) {
  std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line[begin] == '#') return;
  const std::size_t colon = line.find(':', begin);
  if (colon == std::string_view::npos) return;
  std::string_view key = line.substr(begin, colon - begin);
  std::string_view value = line.substr(colon + 1);
  if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos) value = value.substr(0, comment);
  while (!value.empty() && (is_blank(value.front()))) value.remove_prefix(1);
  while (!value.empty() && (is_blank(value.back()))) value.remove_suffix(1);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) {
    value = value.substr(1, value.size() - 2);
  }
  if (!is_flag_map) {
    flags.environment[std::string(key)] = value;
    return;
  }
  flags.add(
      {.name = flag_name(key), .value = std::string(value), .line = number, .column = static_cast<int>(begin) + 1});
}

void read_map(std::string_view text, Flags& flags) {
  int number = 0;
  std::string section;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool is_top = !line.empty() && !is_blank(line[0]) && line[0] != '#';
    if (is_top) section = line.substr(0, line.find(':'));
    if (is_top) continue;
    if (section.starts_with(kModelArguments)) read_entry(line, number, true, flags);
    if (section == "ENV_VARS") read_entry(line, number, false, flags);
  }
}

}  // namespace

void Flags::add(Flag flag) {
  std::erase_if(flags_, [&](const Flag& other) { return other.name == flag.name; });
  flags_.push_back(std::move(flag));
}

const Flag* Flags::find(std::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

bool Flags::is_on(std::string_view name) const {
  const Flag* flag = find(name);
  return flag != nullptr && flag->value != "false" && flag->value != "False" && flag->value != "None";
}

std::optional<std::int64_t> Flags::number(std::string_view name) const {
  const Flag* flag = find(name);
  if (flag == nullptr || flag->value == "None" || flag->value == "null") return std::nullopt;
  std::int64_t value = 0;
  const char* const end = flag->value.data() + flag->value.size();
  const auto result = std::from_chars(flag->value.data(), end, value);
  const bool has_blank = result.ptr != end && *result.ptr == ' ';  // a word that belongs to no flag follows
  if (result.ec != std::errc{} || (result.ptr != end && !has_blank) || value < 0 || value > (std::int64_t{1} << 40)) {
    const bool is_open = flag->value.find('$') != std::string::npos;
    fail(name, fmt::format("expected a whole number, found '{}'{}", flag->value,
                           is_open ? ": put the variable's value in its place" : ""));
  }
  return value;
}

std::string Flags::text(std::string_view name, std::string_view otherwise) const {
  const Flag* flag = find(name);
  return flag == nullptr ? std::string(otherwise) : flag->value;
}

void Flags::fail(std::string_view name, const std::string& message) const {
  const Flag* flag = find(name);
  std::string shown(name);
  std::replace(shown.begin(), shown.end(), '_', '-');
  throw InputError(
      {{file_, flag == nullptr ? 0 : flag->line, flag == nullptr ? 0 : flag->column, "--" + shown, message}});
}

bool has_flags(std::string_view text) {
  if (text.starts_with("schema_version") || text.find("\nschema_version") != std::string_view::npos) return false;
  if (text.starts_with(kModelArguments) || text.find("\nMODEL_ARGS") != std::string_view::npos) return true;
  return text.find("--num-layers") != std::string_view::npos || text.find("--hidden-size") != std::string_view::npos;
}

Flags read_flags(const std::filesystem::path& file) {
  const std::string text = read_unpacked(file, kMostScript);
  Flags flags(file.string());
  const bool is_map = text.starts_with(kModelArguments) || text.find("\nMODEL_ARGS") != std::string::npos;
  if (is_map) {
    read_map(text, flags);
  } else {
    read_script(text, flags);
  }
  return flags;
}

}  // namespace tandem
