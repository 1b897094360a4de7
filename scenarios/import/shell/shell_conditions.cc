#include "scenarios/import/shell/shell_conditions.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tandem {
namespace {

constexpr int kDeepestTest = 50;

std::optional<long long> number_of(const std::string& text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty()) return 0;
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

class ShellTest {
 public:
  explicit ShellTest(const std::vector<ShellTestPart>& parts) : parts_(parts) {}

  ShellTruth value() {
    ShellTruth truth;
    truth.holds = any();
    truth.reason = reason_;
    truth.unset = unset_;
    if (!reason_.empty()) truth.holds = false;
    return truth;
  }

 private:
  bool is(std::string_view text) const {
    return at_ < parts_.size() &&
           (parts_[at_].symbol.empty() ? !parts_[at_].word.is_quoted && parts_[at_].word.text == text
                                       : parts_[at_].symbol == text);
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }

  bool any() {
    bool holds = every();
    while (take("||") || take("-o")) holds = every() || holds;
    return holds;
  }
  bool every() {
    bool holds = one();
    while (take("&&") || take("-a")) holds = one() && holds;
    return holds;
  }
  bool one() {
    if (at_ >= parts_.size() || ++depth_ > kDeepestTest) return false;
    if (take("!")) {
      return !one();
    }
    if (take("(")) {
      const bool holds = any();
      take(")");
      return holds;
    }
    return primary();
  }

  bool primary() {
    const ShellWord first = parts_[at_].word;
    const bool has_second = at_ + 1 < parts_.size() && parts_[at_ + 1].symbol.empty();
    if (has_second && is_comparison(parts_[at_ + 1].word.text)) {
      const std::string operation = parts_[at_ + 1].word.text;
      const ShellWord second = at_ + 2 < parts_.size() ? parts_[at_ + 2].word : ShellWord{};
      at_ += 3;
      return compared(first, operation, second);
    }
    if (has_second && first.text.size() == 2 && first.text[0] == '-') {
      const ShellWord operand = parts_[at_ + 1].word;
      at_ += 2;
      if (first.text == "-z") return operand.text.empty() && !operand.is_unknown;
      if (first.text == "-n") return !operand.text.empty() || operand.is_unknown;
      return undecided(fmt::format("{} {} holds", first.text, operand.shown));
    }
    ++at_;
    return !first.text.empty() || first.is_unknown;
  }

  static bool is_comparison(const std::string& text) {
    for (const char* known : {"=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "=~"}) {
      if (text == known) return true;
    }
    return false;
  }

  bool undecided(const std::string& what) {
    reason_ = what;
    return false;
  }

  bool compared(const ShellWord& first, const std::string& operation, const ShellWord& second) {
    const std::string shown = fmt::format("{} {} {}", first.shown, operation, second.shown);
    for (const ShellWord* word : {&first, &second}) {
      if (!word->is_unknown && word->text != word->shown) unset_ = word->shown;
    }
    if (first.is_unknown || second.is_unknown || operation == "=~") return undecided(shown);
    if (operation == "=" || operation == "==") return matches_shell_pattern(first, second);
    if (operation == "!=") return !matches_shell_pattern(first, second);
    const auto a = number_of(first.text), b = number_of(second.text);
    if (!a || !b) return undecided(shown);
    if (operation == "-eq") return *a == *b;
    if (operation == "-ne") return *a != *b;
    if (operation == "-lt") return *a < *b;
    if (operation == "-le") return *a <= *b;
    if (operation == "-gt") return *a > *b;
    return *a >= *b;
  }

  const std::vector<ShellTestPart>& parts_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string reason_, unset_;
};

}  // namespace

std::string symbol_of(ShellMark mark) {
  if (mark == ShellMark::and_if) return "&&";
  if (mark == ShellMark::or_if) return "||";
  return mark == ShellMark::open ? "(" : ")";
}

ShellTruth evaluated_test(const std::vector<ShellTestPart>& parts) {
  return ShellTest(parts).value();
}

bool matches_shell_pattern(const ShellWord& subject, const ShellWord& pattern) {
  if (pattern.is_quoted) return subject.text == pattern.text;
  return matches_shell_glob(subject.text, pattern.text);
}

}  // namespace tandem
