#include "scenarios/import/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tandem {

void Flags::remove(std::string_view name) {
  std::erase_if(flags_, [&](const Flag& other) { return other.name == name; });
}

void Flags::add(Flag flag) {
  remove(flag.name);
  flags_.push_back(std::move(flag));
}

const Flag* Flags::find(std::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags_.end() ? nullptr : &*found;
}

bool Flags::is_on(std::string_view name) const {
  const Flag* flag = find(name);
  return flag != nullptr && flag->value != "false" && flag->value != "False" && flag->value != "None" &&
         flag->value != "null";
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

Diagnostic Flags::place_of(std::string_view name) const {
  const Flag* flag = find(name);
  std::string shown(name);
  std::replace(shown.begin(), shown.end(), '_', '-');
  const Flag* near = flag == nullptr && !flags_.empty() ? &flags_.front() : flag;  // those that lack it
  const FilePlace place = near == nullptr ? kBeginning : FilePlace{.line = near->line, .column = near->column};
  return problem_at(file_, place, "", "--" + shown);
}

void Flags::fail(std::string_view name, const std::string& message) const {
  Diagnostic problem = place_of(name);
  problem.message = message;
  throw InputError({problem});
}

}  // namespace tandem
