#include "scenarios/import/python/python_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>

#include "scenarios/import/python/python_tokens.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Tokens = std::span<const PythonToken>;

bool is_mark(const PythonToken& token, std::string_view mark) {
  return token.kind == PythonToken::Kind::mark && token.text == mark;
}

bool is_name(const PythonToken& token, std::string_view name) {
  return token.kind == PythonToken::Kind::name && token.text == name;
}

bool makes_config(const PythonValue& value) {
  return value.kind == PythonValue::Kind::call && value.text.ends_with("Config");
}

// Reads an expression from the beginning of some tokens.
class PythonExpression {
 public:
  PythonExpression(Tokens tokens, const std::string& file) : tokens_(tokens), file_(file) {}

  // Up to a comma or a closing bracket outside of the expression's own brackets.
  PythonValue read() {
    constexpr int kMostDepth = 100;
    const std::size_t begin = at_;
    if (depth_ == kMostDepth) {
      const PythonToken& here = tokens_[std::min(at_, tokens_.size() - 1)];
      throw InputError({problem_at(file_, {.line = here.line, .column = here.column}, "is nested too deeply")});
    }
    ++depth_;
    PythonValue value = primary();
    --depth_;
    if (is_at_end()) return value;
    PythonValue unread{.arguments = {}, .line = tokens_[begin].line, .column = tokens_[begin].column};
    skip();
    return unread;
  }
  bool has_more() const { return at_ < tokens_.size(); }

 private:
  bool is_at(std::string_view mark) const { return has_more() && is_mark(tokens_[at_], mark); }
  bool is_at_end() const { return !has_more() || is_at(",") || is_at(")") || is_at("]") || is_at("}"); }

  void skip() {
    for (int depth = 0; has_more() && (depth > 0 || !is_at_end()); ++at_) {
      if (is_at("(") || is_at("[") || is_at("{")) ++depth;
      if (is_at(")") || is_at("]") || is_at("}")) --depth;
    }
  }

  PythonValue primary() {
    PythonValue value{.arguments = {}};
    if (!has_more()) return value;
    const PythonToken& first = tokens_[at_];
    value.line = first.line;
    value.column = first.column;
    if (first.kind == PythonToken::Kind::number) {
      ++at_;
      return number(std::move(value), first.text);
    }
    if (is_mark(first, "-") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == PythonToken::Kind::number) {
      at_ += 2;
      return number(std::move(value), "-" + tokens_[at_ - 1].text);
    }
    if (first.kind == PythonToken::Kind::text) {
      value.kind = PythonValue::Kind::text;
      while (has_more() && tokens_[at_].kind == PythonToken::Kind::text) value.text += tokens_[at_++].text;
      return value;
    }
    if (is_mark(first, "[") || is_mark(first, "(")) return list(std::move(value));
    if (first.kind == PythonToken::Kind::name) return named(std::move(value));
    skip();
    return value;
  }

  static PythonValue number(PythonValue value, std::string text) {
    const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
    value.kind = is_whole ? PythonValue::Kind::whole : PythonValue::Kind::real;
    value.text = std::move(text);
    return value;
  }

  PythonValue list(PythonValue value) {
    const char* const end = is_at("[") ? "]" : ")";
    ++at_;
    value.kind = PythonValue::Kind::list;
    while (has_more() && !is_at(end)) {
      value.items.push_back(read());
      if (is_at(",")) {
        ++at_;
      } else if (!is_at(end)) {
        break;
      }
    }
    if (has_more()) ++at_;
    return value;
  }

  // A constant, a name with dots, or a call.
  PythonValue named(PythonValue value) {
    const std::string word = tokens_[at_].text;
    value.text = word;
    ++at_;
    if (word == "True" || word == "False" || word == "None") {
      value.kind = word == "None" ? PythonValue::Kind::none : PythonValue::Kind::boolean;
      return value;
    }
    while (is_at(".") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == PythonToken::Kind::name) {
      value.text += "." + tokens_[at_ + 1].text;
      at_ += 2;
    }
    if (!is_at("(")) return value;
    ++at_;
    value.kind = PythonValue::Kind::call;
    while (has_more() && !is_at(")")) {
      const bool has_keyword = at_ + 1 < tokens_.size() && tokens_[at_].kind == PythonToken::Kind::name &&
                               is_mark(tokens_[at_ + 1], "=") &&
                               !(at_ + 2 < tokens_.size() && is_mark(tokens_[at_ + 2], "="));
      if (has_keyword) {
        const std::string keyword = tokens_[at_].text;
        at_ += 2;
        value.arguments.push_back({keyword, read()});
      } else {
        value.items.push_back(read());
      }
      if (is_at(",")) ++at_;
    }
    if (has_more()) ++at_;
    return value;
  }

  Tokens tokens_;
  const std::string& file_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// A configuration's own name and the lines that make it.
struct Definition {
  std::string name;
  std::vector<PythonLine> body;
};

class PythonReader {
 public:
  PythonReader(std::string_view text, const std::string& file) : file_(file) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 20;
    if (text.size() > kMostBytes) fail("is larger than any configuration: more than 1 MiB");
    const std::vector<PythonLine> lines = python_lines(text, file);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::vector<PythonToken>& tokens = lines[i].tokens;
      if (tokens.front().column > 1) continue;
      const bool is_function = is_name(tokens.front(), "def") && tokens.size() > 1;
      Definition definition{.name = tokens[is_function ? 1 : 0].text, .body = {}};
      if (!is_function && !(tokens.size() > 2 && is_mark(tokens[1], "="))) continue;
      if (!is_function) definition.body.push_back(lines[i]);
      for (; is_function && i + 1 < lines.size() && lines[i + 1].tokens.front().column > 1; ++i) {
        definition.body.push_back(lines[i + 1]);
      }
      places_[definition.name] = definitions_.size();  // the last one counts
      definitions_.push_back(std::move(definition));
    }
  }

  PythonConfig read(const std::string& name) {
    std::vector<std::string> names;
    for (const Definition& definition : definitions_) {
      if (makes_config(value_of(definition, 0))) names.push_back(definition.name);
    }
    if (names.empty()) fail("makes no configuration: expected a function that returns Trainer.Config(...)");
    if (name.empty() && names.size() > 1) {
      fail(fmt::format("has several configurations, of which `tandem import` takes one by --config: {}",
                       fmt::join(names, ", ")));
    }
    const std::string chosen = name.empty() ? names.front() : name;
    if (std::ranges::count(names, chosen) == 0) {
      fail(fmt::format("has no configuration '{}' (--config); it has {}", chosen, fmt::join(names, ", ")));
    }
    skipped_.clear();
    PythonConfig config{.name = chosen, .value = value_of(*find(chosen), 0)};
    config.skipped = std::move(skipped_);
    return config;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({problem_at(file_, {.line = 1, .column = 1}, message)});
  }

  const Definition* find(const std::string& name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &definitions_[found->second];
  }

  // Follows the statements of a function, or of a variable. Lines that are further in belong to others.
  PythonValue value_of(const Definition& definition, int depth) {
    spend({.arguments = {}});
    std::map<std::string, PythonValue> locals;
    PythonValue result{.arguments = {}};
    if (definition.body.empty()) return result;
    const int indent = definition.body.front().tokens.front().column;
    for (const PythonLine& line : definition.body) {
      const Tokens tokens(line.tokens);
      if (tokens.front().column > indent) continue;
      if (is_name(tokens.front(), "return")) return evaluated(tokens.subspan(1), locals, depth);
      if (!assign(tokens, locals, depth)) skip(tokens);
    }
    const auto own = locals.find(definition.name);
    return own == locals.end() ? result : own->second;
  }

  PythonValue evaluated(Tokens tokens, const std::map<std::string, PythonValue>& locals, int depth) {
    PythonExpression expression(tokens, file_);
    PythonValue value = expression.read();
    if (expression.has_more()) value = {.arguments = {}, .line = tokens.front().line, .column = tokens.front().column};
    resolve(value, locals, depth);
    spend(value);
    return value;
  }

  // Puts values in the place of names, also inside of lists and calls.
  void resolve(PythonValue& value, const std::map<std::string, PythonValue>& locals, int depth) {
    constexpr int kMostDepth = 16;
    if (value.kind == PythonValue::Kind::unread) {
      if (const auto local = locals.find(value.text); local != locals.end()) {
        spend(local->second);
        value = local->second;
      }
      return;
    }
    for (PythonValue& item : value.items) resolve(item, locals, depth);
    for (PythonArgument& argument : value.arguments) resolve(argument.value, locals, depth);
    if (value.kind != PythonValue::Kind::call || !value.items.empty() || !value.arguments.empty()) return;
    const Definition* const called = find(value.text);
    if (called != nullptr && depth < kMostDepth) value = value_of(*called, depth + 1);
  }

  // Values that take the place of names may grow without end.
  void spend(const PythonValue& value) {
    constexpr std::int64_t kMostPythonValues = 1'000'000;
    if (++values_ > kMostPythonValues) fail("is larger than any configuration: more than a million values");
    for (const PythonValue& item : value.items) spend(item);
    for (const PythonArgument& argument : value.arguments) spend(argument.value);
  }

  // NAME = value, NAME.key.key = value.
  bool assign(Tokens tokens, std::map<std::string, PythonValue>& locals, int depth) {
    std::size_t at = 1;
    std::vector<std::string> keys;
    while (at + 1 < tokens.size() && is_mark(tokens[at], ".") && tokens[at + 1].kind == PythonToken::Kind::name) {
      keys.push_back(tokens[at + 1].text);
      at += 2;
    }
    const bool is_assignment = tokens.front().kind == PythonToken::Kind::name && at + 1 < tokens.size() &&
                               is_mark(tokens[at], "=") && !is_mark(tokens[at + 1], "=");
    if (!is_assignment) return false;
    constexpr std::size_t kMostKeys = 64;
    if (keys.size() > kMostKeys) fail("is nested too deeply");
    PythonValue value = evaluated(tokens.subspan(at + 1), locals, depth);
    if (keys.empty()) {
      locals[tokens.front().text] = std::move(value);
      return true;
    }
    const auto local = locals.find(tokens.front().text);
    if (local == locals.end()) return false;
    PythonValue* to = &local->second;
    for (const std::string& key : keys) {
      if (to->kind != PythonValue::Kind::call) return false;
      auto argument = std::ranges::find(to->arguments, key, &PythonArgument::name);
      if (argument == to->arguments.end()) {
        PythonValue empty{.kind = PythonValue::Kind::call, .arguments = {}, .line = value.line, .column = value.column};
        to->arguments.push_back({key, std::move(empty)});
        argument = std::prev(to->arguments.end());
      }
      to = &argument->value;
    }
    *to = std::move(value);
    return true;
  }

  // Texts, imports and functions of their own change nothing.
  void skip(Tokens tokens) {
    const PythonToken& first = tokens.front();
    if (first.kind == PythonToken::Kind::text) return;
    for (const char* silent : {"import", "from", "def", "pass", "assert"}) {
      if (is_name(first, silent)) return;
    }
    skipped_.push_back(fmt::format("{}:{}: {}", first.line, first.column, first.text));
  }

  const std::string& file_;
  std::vector<Definition> definitions_;
  std::map<std::string, std::size_t> places_;
  std::int64_t values_ = 0;
  std::vector<std::string> skipped_;
};

}  // namespace

const PythonValue* PythonValue::find(std::string_view keyword) const {
  const auto found = std::ranges::find(arguments, keyword, &PythonArgument::name);
  return found == arguments.end() ? nullptr : &found->value;
}

PythonConfig read_python_config(std::string_view text, const std::string& file, const std::string& name) {
  return PythonReader(text, file).read(name);
}

}  // namespace tandem
