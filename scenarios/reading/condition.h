// Conditions that the points of a sweep must meet, such as `data * tensor * pipeline == devices` and
// `strategy == 'mesh' or tensor == 1`.
//
// Numbers, texts in single quotes, names, true and false; * / % before + -, before == != < <= > >=, before not, and,
// or; parentheses. Only values of one kind can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

using ConditionValue = std::variant<double, std::string>;  // true is 1, false 0

// A condition, or its values, are wrong. where() is the place in its text, counted from 0.
class ConditionError : public Error {
 public:
  ConditionError(const std::string& message, std::size_t where) : Error(message), where_(where) {}
  std::size_t where() const { return where_; }

 private:
  std::size_t where_;
};

class Condition {
 public:
  // Throws ConditionError.
  explicit Condition(std::string_view text);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  // each once

  // Returns whether the values meet the condition. `value_of` gets indices into names(), and is not called for names
  // that `and` and `or` skip. Throws ConditionError where values do not go together, and what `value_of` throws.
  bool holds(const std::function<ConditionValue(std::size_t name)>& value_of) const;

 private:
  friend class ConditionParser;
  friend class ConditionRun;
  enum class Operation : std::uint8_t {
    constant,
    name,
    add,
    subtract,
    multiply,
    divide,
    remainder,
    equal,
    different,
    less,
    less_or_equal,
    greater,
    greater_or_equal,
    both,
    either,
    negation,
  };
  // An operation on the values of earlier nodes.
  struct Node {
    Operation operation = Operation::constant;
    std::size_t left = 0, right = 0;  // a name: its place in names()
    ConditionValue value{};           // of a constant
    std::size_t where = 0;
  };

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Node> nodes_;  // the last one is the condition
};

}  // namespace tandem
