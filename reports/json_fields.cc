#include "reports/json_fields.h"

#include <limits>

namespace tandem {
namespace {

// Returns the document in the text of a page; any other text is the document itself.
std::string_view document_in(std::string_view text, const std::string& file) {
  if (!text.starts_with(kPageBegin)) return text;
  const std::size_t begin = text.find(kPageDocumentBegin);
  const std::size_t end = begin == std::string_view::npos ? begin : text.find(kPageDocumentEnd, begin);
  if (end == std::string_view::npos) {
    throw InputError({{.file = file, .path = "", .message = "is a page without a document of Tandem"}});
  }
  return text.substr(begin + kPageDocumentBegin.size(), end - begin - kPageDocumentBegin.size());
}

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

std::int64_t JsonField::count() const {
  if (!present()) return 0;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() <= kLargest) return value_->get<std::int64_t>();
  // A document made in memory holds its integers signed.
  if (value_->is_number_integer() && value_->get<std::int64_t>() >= 0) return value_->get<std::int64_t>();
  error("expected a whole number of 0 or more");
  return 0;
}

int JsonField::small_count() const {
  const std::int64_t value = count();
  if (value <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  error("is larger than any report has");
  return 0;
}

int JsonField::positive_count() const {
  const int value = small_count();
  if (present() && value_->is_number_integer() && value_->get<double>() == 0) error("must be at least 1");
  return value;
}

std::int64_t JsonField::integer() const {
  if (!present()) return 0;
  if (value_->is_number_integer() && !value_->is_number_unsigned()) return value_->get<std::int64_t>();
  return count();
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
  Diagnostic diagnostic{.file = *file_, .path = path_, .message = std::move(message)};
  for (const Diagnostic& known : *problems_) {
    if (known.path == diagnostic.path && known.message == diagnostic.message) return;
  }
  problems_->push_back(std::move(diagnostic));
}

JsonField::Json parse_json(std::string_view text, const std::string& file) {
  try {
    return JsonField::Json::parse(document_in(text, file));
  } catch (const nlohmann::json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": users need only the text after it.
    std::string what = error.what();
    if (const std::size_t bracket = what.find("] "); bracket != std::string::npos) what = what.substr(bracket + 2);
    throw InputError({{.file = file, .path = "", .message = "is not JSON: " + what}});
  } catch (const nlohmann::json::exception& error) {
    throw InputError({{.file = file, .path = "", .message = std::string("is not JSON: ") + error.what()}});
  }
}

}  // namespace tandem
