#include "scenarios/import/shell/shell_arithmetic.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace tandem {
namespace {

constexpr double kMostShellNumber = 9007199254740992.0;
constexpr int kDeepestArithmetic = 100;

class Arithmetic {
 public:
  // `operands_left` bounds the work of an expression and of all variables in it.
  Arithmetic(std::string_view text, const ShellVariable& variable, int depth, int& operands_left)
      : text_(text), variable_(variable), depth_(depth), operands_left_(operands_left) {}

  std::optional<long long> value() {
    const long long result = choice();
    skip_blanks();
    if (has_failed_ || at_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  struct Operator {
    std::string_view text;
    int level;
  };
  // Longer ones before those that they begin with.
  static constexpr std::array kOperators = {
      Operator{"||", 0}, Operator{"&&", 1}, Operator{"==", 2}, Operator{"!=", 2}, Operator{"<=", 3},
      Operator{">=", 3}, Operator{"<", 3},  Operator{">", 3},  Operator{"+", 4},  Operator{"-", 4},
      Operator{"**", 6}, Operator{"*", 5},  Operator{"/", 5},  Operator{"%", 5},
  };

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  long long fail() {
    has_failed_ = true;
    return 0;
  }

  const Operator* next_operator() {
    skip_blanks();
    for (const Operator& known : kOperators) {
      if (text_.substr(at_).starts_with(known.text)) return &known;
    }
    return nullptr;
  }

  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // condition ? value : other value
  long long choice() {
    const long long condition = binary(0);
    if (!take('?')) return condition;
    if (++nested_ > kDeepestArithmetic) return fail();
    const long long first = choice();
    if (!take(':')) return fail();
    const long long second = choice();
    --nested_;
    return condition != 0 ? first : second;
  }

  long long binary(int level) {
    if (++nested_ > kDeepestArithmetic) return fail();
    long long left = unary();
    for (const Operator* next = next_operator(); next != nullptr && next->level >= level && !has_failed_;
         next = next_operator()) {
      at_ += next->text.size();
      const long long right = binary(next->text == "**" ? next->level : next->level + 1);
      left = apply(next->text, left, right);
    }
    --nested_;
    return left;
  }

  long long apply(std::string_view operation, long long left, long long right) {
    if (operation == "||") return left != 0 || right != 0 ? 1 : 0;
    if (operation == "&&") return left != 0 && right != 0 ? 1 : 0;
    if (operation == "==") return left == right ? 1 : 0;
    if (operation == "!=") return left != right ? 1 : 0;
    if (operation == "<=") return left <= right ? 1 : 0;
    if (operation == ">=") return left >= right ? 1 : 0;
    if (operation == "<") return left < right ? 1 : 0;
    if (operation == ">") return left > right ? 1 : 0;
    if ((operation == "/" || operation == "%") && right == 0) return fail();
    if (operation == "/") return left / right;
    if (operation == "%") return left % right;
    const auto a = static_cast<double>(left), b = static_cast<double>(right);
    const double result = operation == "+"   ? a + b
                          : operation == "-" ? a - b
                          : operation == "*" ? a * b
                                             : std::pow(a, b);
    return std::abs(result) <= kMostShellNumber ? static_cast<long long>(result) : fail();
  }

  long long unary() {
    skip_blanks();
    if (at_ >= text_.size() || ++nested_ > kDeepestArithmetic) return fail();
    const char c = text_[at_];
    long long result = 0;
    if (c == '-' || c == '+' || c == '!') {
      ++at_;
      const long long value = unary();
      result = c == '-' ? -value : c == '+' ? value : value == 0 ? 1 : 0;
    } else if (c == '(') {
      ++at_;
      result = choice();
      if (!take(')')) return fail();
    } else {
      result = operand();
    }
    --nested_;
    return result;
  }

  long long operand() {
    if (--operands_left_ < 0) return fail();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return fail();
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) return variable_value(std::string(word));
    long long value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number = error == std::errc{} && end == word.data() + word.size();
    return is_number && static_cast<double>(value) <= kMostShellNumber ? value : fail();
  }

  long long variable_value(const std::string& name) {
    const auto text = depth_ < 8 ? variable_(name) : std::nullopt;
    if (!text) return fail();
    const auto value = Arithmetic(*text, variable_, depth_ + 1, operands_left_).value();
    return value ? *value : fail();
  }

  std::string_view text_;
  const ShellVariable& variable_;
  int depth_;
  int& operands_left_;
  std::size_t at_ = 0;
  int nested_ = 0;
  bool has_failed_ = false;
};

}  // namespace

std::optional<long long> shell_arithmetic(std::string_view expression, const ShellVariable& variable) {
  int operands_left = 100'000;
  return Arithmetic(expression, variable, 0, operands_left).value();
}

}  // namespace tandem
