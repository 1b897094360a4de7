// Reads the fields of a JSON object, and reports everything that is missing or wrong together, each problem with its
// place and path.
//
// Threads: one at a time for all fields of a document, which share its list of problems.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reports/base/json_document.h"

namespace tandem {

class Reading;

// A value in a document. Problems are added to those of its reading; a wrong or missing value reads as 0 or as empty.
class JsonField {
 public:
  using Json = nlohmann::ordered_json;

  JsonField required(const std::string& key) const;
  JsonField optional(const std::string& key) const;

  std::string text() const;
  bool boolean() const;
  std::int64_t count() const;         // a whole number, 0 or more, of ns or bytes: sums of them fit 64 bits
  std::int64_t whole_number() const;  // a whole number, 0 or more, that nothing adds up
  int small_count() const;            // one that fits an int
  int positive_count() const;         // likewise, of 1 or more
  std::int64_t integer() const;       // count() with a sign
  bool is_count() const;              // whether count() reads it
  double number() const;
  double number_or_null() const;  // null, as writers print a number that is not finite, reads as NaN
  std::vector<JsonField> items() const;
  std::vector<std::pair<std::string, JsonField>> entries() const;

  bool present() const { return value_ != nullptr; }
  bool is_number() const { return value_ != nullptr && value_->is_number(); }
  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  // Reports a problem at this value, or, where it is absent, at the object that lacks it.
  void error(std::string message) const;

 private:
  friend class Reading;
  JsonField(Reading& reading, const Json& document) : reading_(&reading), value_(&document), near_(&document) {}
  JsonField(const JsonField& parent, const Json* value, std::string path)
      : reading_(parent.reading_),
        value_(value),
        near_(value != nullptr ? value : parent.near_),
        path_(std::move(path)) {}
  std::int64_t bounded(std::uint64_t most) const;
  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  Reading* reading_;
  const Json* value_;  // null: absent
  const Json* near_;   // the value, or what lacks it
  std::string path_;
};

// Returns the text of an optional field, or "".
inline std::string text_or_empty(const JsonField& field, const std::string& key) {
  const JsonField value = field.optional(key);
  return value.present() ? value.text() : "";
}

// Reads a document, which must outlive it, and reports all its mistakes together. `origin` is where the document was
// read from.
class Reading {
 public:
  Reading(const JsonField::Json& document, JsonOrigin origin)
      : document_(document), origin_(std::move(origin)), root_(*this, document) {}
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  const JsonField& root() const { return root_; }
  // Throws InputError with all that was missing or wrong so far.
  void finish();

 private:
  friend class JsonField;
  struct Problem {
    const JsonField::Json* near;
    std::string path, message;
  };
  const JsonField::Json& document_;
  JsonOrigin origin_;
  std::vector<Problem> problems_;
  JsonField root_;
};

// Throws InputError, which says that a document is of a kind that cannot be used: "is 'x', <message>".
[[noreturn]] void refuse_kind(const JsonField::Json& document, const JsonOrigin& origin, const std::string& message);

}  // namespace tandem
