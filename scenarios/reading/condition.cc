#include "scenarios/reading/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "topologies/base/units.h"

namespace tandem {
namespace {

bool begins_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool continues_name(char c) {
  return begins_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
}

constexpr int kMostNested = 100;
constexpr std::size_t kMostCharacters = 1000;

}  // namespace

// Recursive descent, a function a level of precedence.
class ConditionParser {
 public:
  explicit ConditionParser(Condition& condition) : condition_(condition), text_(condition.text_) {}

  void parse() {
    if (text_.size() > kMostCharacters) fail(fmt::format("longer than {} characters", kMostCharacters));
    either();
    if (here() < text_.size()) fail("expected an operator");
  }

 private:
  using Operation = Condition::Operation;
  struct Sign {
    std::string_view text;
    Operation operation;
  };

  [[noreturn]] void fail(const std::string& message) const { throw ConditionError(message, at_); }

  std::size_t here() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_;
  }

  std::string_view word() {
    std::size_t end = here();
    while (end < text_.size() && continues_name(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool take_word(std::string_view wanted) {
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  template <std::size_t count>
  std::optional<Operation> take(const std::array<Sign, count>& signs) {
    here();
    for (const Sign& sign : signs) {
      if (!text_.substr(at_).starts_with(sign.text)) continue;
      at_ += sign.text.size();
      return sign.operation;
    }
    return std::nullopt;
  }

  std::size_t add(Condition::Node node) {
    condition_.nodes_.push_back(std::move(node));
    return condition_.nodes_.size() - 1;
  }

  std::size_t either() {
    std::size_t left = both();
    while (take_word("or")) {
      const std::size_t where = at_;
      left = add({.operation = Operation::either, .left = left, .right = both(), .value = {}, .where = where});
    }
    return left;
  }

  std::size_t both() {
    std::size_t left = negation();
    while (take_word("and")) {
      const std::size_t where = at_;
      left = add({.operation = Operation::both, .left = left, .right = negation(), .value = {}, .where = where});
    }
    return left;
  }

  std::size_t negation() {
    if (!take_word("not")) return comparison();
    const std::size_t where = at_;
    nest();
    const std::size_t of = negation();
    --nested_;
    return add({.operation = Operation::negation, .left = of, .value = {}, .where = where});
  }

  std::size_t comparison() {
    static constexpr std::array<Sign, 6> kComparisons{{{"==", Operation::equal},
                                                       {"!=", Operation::different},
                                                       {"<=", Operation::less_or_equal},
                                                       {">=", Operation::greater_or_equal},
                                                       {"<", Operation::less},
                                                       {">", Operation::greater}}};
    const std::size_t left = sum(), where = here();
    const std::optional<Operation> operation = take(kComparisons);
    if (!operation) return left;
    const std::size_t compared =
        add({.operation = *operation, .left = left, .right = sum(), .value = {}, .where = where});
    const std::size_t second = here();
    if (take(kComparisons)) {
      at_ = second;
      fail("one comparison after another; join them with `and`, as in 1 <= a and a <= 8");
    }
    return compared;
  }

  std::size_t sum() {
    static constexpr std::array<Sign, 2> kSums{{{"+", Operation::add}, {"-", Operation::subtract}}};
    return chain(kSums, [this] { return product(); });
  }

  std::size_t product() {
    static constexpr std::array<Sign, 3> kProducts{
        {{"*", Operation::multiply}, {"/", Operation::divide}, {"%", Operation::remainder}}};
    return chain(kProducts, [this] { return operand(); });
  }

  // Operations of one precedence, from left to right.
  template <std::size_t count, typename Next>
  std::size_t chain(const std::array<Sign, count>& signs, Next next) {
    std::size_t left = next();
    for (;;) {
      const std::size_t where = here();
      const std::optional<Operation> operation = take(signs);
      if (!operation) return left;
      left = add({.operation = *operation, .left = left, .right = next(), .value = {}, .where = where});
    }
  }

  void nest() {
    if (++nested_ > kMostNested) fail("nested too deeply");
  }

  std::size_t operand() {
    const std::size_t where = here();
    if (at_ == text_.size()) fail("ends too early");
    if (text_[at_] == '(') return parenthesis();
    if (text_[at_] == '\'') return quoted();
    const std::string_view name = word();
    if (name.empty()) fail(fmt::format("expected a value, found '{}'", text_[at_]));
    if (!begins_name(name.front())) return number(name);
    at_ += name.size();
    if (name == "true" || name == "false") return add({.value = name == "true" ? 1.0 : 0.0, .where = where});
    std::vector<std::string>& names = condition_.names_;
    const auto known = std::find(names.begin(), names.end(), name);
    const auto place = static_cast<std::size_t>(known - names.begin());
    if (known == names.end()) names.emplace_back(name);
    return add({.operation = Operation::name, .left = place, .value = {}, .where = where});
  }

  std::size_t parenthesis() {
    ++at_;
    nest();
    const std::size_t inner = either();
    --nested_;
    here();
    if (at_ == text_.size() || text_[at_] != ')') fail("expected )");
    ++at_;
    return inner;
  }

  std::size_t quoted() {
    const std::size_t where = at_;
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) fail("a text without its end");
    at_ = end + 1;
    return add({.value = std::string(text_.substr(where + 1, end - where - 1)), .where = where});
  }

  // A plain number, or bytes: 25MB.
  std::size_t number(std::string_view text) {
    const auto value = parse_quantity(text, Dimension::bytes);
    if (!value) fail(fmt::format("'{}' is no number", text));
    const std::size_t where = at_;
    at_ += text.size();
    return add({.value = *value, .where = where});
  }

  Condition& condition_;
  std::string_view text_;
  std::size_t at_ = 0;
  int nested_ = 0;
};

class ConditionRun {
 public:
  ConditionRun(const Condition& condition, const std::function<ConditionValue(std::size_t)>& value_of)
      : condition_(condition), value_of_(value_of) {}

  bool holds() const { return is_true(condition_.nodes_.size() - 1); }

 private:
  using Operation = Condition::Operation;

  [[noreturn]] static void fail(const std::string& message, const Condition::Node& node) {
    throw ConditionError(message, node.where);
  }

  bool is_true(std::size_t index) const { return number(index) != 0; }

  double number(std::size_t index) const {
    const ConditionValue result = value(index);
    if (const auto* const found = std::get_if<double>(&result)) return *found;
    fail(fmt::format("'{}' is no number", std::get<std::string>(result)), condition_.nodes_[index]);
  }

  ConditionValue value(std::size_t index) const {
    const Condition::Node& node = condition_.nodes_[index];
    switch (node.operation) {
      case Operation::constant:
        return node.value;
      case Operation::name:
        return value_of_(node.left);
      case Operation::both:
        return is_true(node.left) && is_true(node.right) ? 1.0 : 0.0;
      case Operation::either:
        return is_true(node.left) || is_true(node.right) ? 1.0 : 0.0;
      case Operation::negation:
        return is_true(node.left) ? 0.0 : 1.0;
      case Operation::equal:
        return are_equal(node) ? 1.0 : 0.0;
      case Operation::different:
        return are_equal(node) ? 0.0 : 1.0;
      default:
        return computed(node, number(node.left), number(node.right));
    }
  }

  bool are_equal(const Condition::Node& node) const {
    const ConditionValue left = value(node.left), right = value(node.right);
    if (left.index() != right.index()) fail("compares a text with a number", node);
    return left == right;
  }

  static double computed(const Condition::Node& node, double left, double right) {
    switch (node.operation) {
      case Operation::add:
        return left + right;
      case Operation::subtract:
        return left - right;
      case Operation::multiply:
        return left * right;
      case Operation::divide:
      case Operation::remainder:
        if (right == 0) fail("divides by 0", node);
        return node.operation == Operation::divide ? left / right : std::fmod(left, right);
      case Operation::less:
        return left < right ? 1 : 0;
      case Operation::less_or_equal:
        return left <= right ? 1 : 0;
      case Operation::greater:
        return left > right ? 1 : 0;
      case Operation::greater_or_equal:
        return left >= right ? 1 : 0;
      default:
        TANDEM_UNREACHABLE("an operation on two numbers");
    }
  }

  const Condition& condition_;
  const std::function<ConditionValue(std::size_t)>& value_of_;
};

Condition::Condition(std::string_view text) : text_(text) {
  ConditionParser(*this).parse();
}

bool Condition::holds(const std::function<ConditionValue(std::size_t)>& value_of) const {
  return ConditionRun(*this, value_of).holds();
}

}  // namespace tandem
