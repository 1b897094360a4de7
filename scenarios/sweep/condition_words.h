// The names that conditions of a sweep have for fields of a scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/sweep/condition.h"

namespace tandem {

struct ConditionWord {
  const char* name;
  const char* path;
  // The value of a scenario that does not state it; null: there is none.
  ConditionValue (*usual)(const Scenario& scenario);
};
std::span<const ConditionWord> condition_words();
const ConditionWord* find_condition_word(std::string_view name);  // or by its path; null: there is none

// A scalar of a scenario as conditions see it: numbers and sizes, true and false, and texts.
ConditionValue condition_value(const std::string& text);

}  // namespace tandem
