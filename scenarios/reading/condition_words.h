// The names by which conditions of a sweep refer to fields of a scenario.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/reading/condition.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

struct ConditionWord {
  const char* name;
  const char* path;
  // Returns the value for a scenario that does not state it; null if there is none.
  ConditionValue (*usual)(const Scenario& scenario);
};
std::span<const ConditionWord> condition_words();
const ConditionWord* find_condition_word(std::string_view name);  // or by its path; null: there is none

// Returns a scalar of a scenario as conditions see it: a number or size, true or false, or a text.
ConditionValue condition_value(const std::string& text);

}  // namespace tandem
