#include "reports/base/json_fields.h"

#include <algorithm>
#include <limits>

#include "topologies/base/strict_yaml.h"  // Diagnostics

namespace tandem {
namespace {

constexpr std::uint64_t kMostCount = 100'000'000'000'000'000;  // three years in ns, 100 PB

}  // namespace

JsonField JsonField::required(const std::string& key) const {
  JsonField field = optional(key);
  if (present() && value_->is_object() && !field.present()) field.error("is missing");
  return field;
}

JsonField JsonField::optional(const std::string& key) const {
  if (!present()) return {*this, nullptr, path_of(key)};
  if (!value_->is_object()) {
    error("expected an object");
    return {*this, nullptr, path_of(key)};
  }
  const auto found = value_->find(key);
  return {*this, found == value_->end() ? nullptr : &*found, path_of(key)};
}

std::string JsonField::text() const {
  if (!present()) return "";
  if (value_->is_string()) return value_->get<std::string>();
  error("expected a text");
  return "";
}

bool JsonField::boolean() const {
  if (!present()) return false;
  if (value_->is_boolean()) return value_->get<bool>();
  error("expected true or false");
  return false;
}

std::int64_t JsonField::bounded(std::uint64_t most) const {
  if (!present()) return 0;
  // A document made in memory holds its integers signed.
  const bool is_signed = value_->is_number_integer() && !value_->is_number_unsigned();
  if (!value_->is_number_integer() || (is_signed && value_->get<std::int64_t>() < 0)) {
    error("expected a whole number of 0 or more");
    return 0;
  }
  const auto value = value_->get<std::uint64_t>();
  if (value > most) error("is larger than any report has");
  return value > most ? 0 : static_cast<std::int64_t>(value);
}

std::int64_t JsonField::count() const {
  return bounded(kMostCount);
}

std::int64_t JsonField::whole_number() const {
  return bounded(std::numeric_limits<std::int64_t>::max());
}

bool JsonField::is_count() const {
  if (!present() || !value_->is_number_integer()) return false;
  return (value_->is_number_unsigned() || value_->get<std::int64_t>() >= 0) &&
         value_->get<std::uint64_t>() <= kMostCount;
}

int JsonField::small_count() const {
  const std::int64_t value = count();
  if (value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  error("is larger than any report has");
  return 0;
}

int JsonField::positive_count() const {
  const int value = small_count();
  if (is_count() && count() == 0) error("must be at least 1");
  return value;
}

std::int64_t JsonField::integer() const {
  if (!present()) return 0;
  const bool is_negative =
      value_->is_number_integer() && !value_->is_number_unsigned() && value_->get<std::int64_t>() < 0;
  if (!is_negative) return count();
  const std::int64_t value = value_->get<std::int64_t>();
  if (value < -static_cast<std::int64_t>(kMostCount)) error("is smaller than any report has");
  return std::max(value, -static_cast<std::int64_t>(kMostCount));
}

double JsonField::number() const {
  if (!present()) return 0;
  if (value_->is_number()) return value_->get<double>();
  error("expected a number");
  return 0;
}

double JsonField::number_or_null() const {
  return is_null() ? std::numeric_limits<double>::quiet_NaN() : number();
}

std::vector<JsonField> JsonField::items() const {
  std::vector<JsonField> fields;
  if (!present()) return fields;
  if (!value_->is_array()) {
    error("expected a list");
    return fields;
  }
  for (const Json& item : *value_) {
    fields.push_back(JsonField(*this, &item, path_ + "[" + std::to_string(fields.size()) + "]"));
  }
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::entries() const {
  std::vector<std::pair<std::string, JsonField>> fields;
  if (!present()) return fields;
  if (!value_->is_object()) {
    error("expected an object");
    return fields;
  }
  for (const auto& [key, value] : value_->items()) fields.emplace_back(key, JsonField(*this, &value, path_of(key)));
  return fields;
}

void JsonField::error(std::string message) const {
  constexpr std::size_t kMost = 1000;  // no message shows as many
  if (reading_->problems_.size() < kMost) reading_->problems_.push_back({near_, path_, std::move(message)});
}

void Reading::finish() {
  if (problems_.empty()) return;
  std::vector<const JsonField::Json*> values;
  for (const Problem& problem : problems_) values.push_back(problem.near);
  const std::vector<FilePlace> places = origin_.places(document_, values);
  Diagnostics all;
  for (std::size_t i = 0; i < problems_.size(); ++i) {
    all.add(problem_at(origin_.file(), places[i], problems_[i].message, problems_[i].path));
  }
  all.throw_if_any();
}

void refuse_kind(const JsonField::Json& document, const JsonOrigin& origin, const std::string& message) {
  Reading reading(document, origin);
  const bool is_object = document.is_object();
  const JsonField kind = is_object ? reading.root().optional("kind") : reading.root();
  const bool is_text = kind.present() && is_object && document["kind"].is_string();
  kind.error("is '" + (is_text ? kind.text() : "") + "', " + message);
  reading.finish();
  TANDEM_UNREACHABLE("a reading with a problem");
}

}  // namespace tandem
