// Reads the fields of a JSON object, and reports everything that is missing or wrong together, each problem with its
// path.
//
// Threads: one at a time for all fields of a document, which share its list of problems.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

// A value in a document, which must outlive the field. Problems are added to `problems`; a wrong or missing value reads
// as 0 or as empty.
class JsonField {
 public:
  using Json = nlohmann::ordered_json;

  JsonField(const Json& document, std::string file, std::vector<Diagnostic>& problems)
      : value_(&document), file_(std::make_shared<const std::string>(std::move(file))), problems_(&problems) {}

  JsonField required(const std::string& key) const;
  JsonField optional(const std::string& key) const;

  std::string text() const;
  bool boolean() const;
  std::int64_t count() const;  // a whole number, 0 or more
  int small_count() const;     // one that fits an int
  int positive_count() const;  // likewise, of 1 or more
  std::int64_t integer() const;
  double number() const;
  double number_or_null() const;  // null, which stands for a number that is not finite, reads as NaN
  std::vector<JsonField> items() const;
  std::vector<std::pair<std::string, JsonField>> entries() const;

  bool present() const { return value_ != nullptr; }
  bool is_null() const { return value_ != nullptr && value_->is_null(); }
  void error(std::string message) const;

 private:
  JsonField(const JsonField& parent, const Json* value, std::string path)
      : value_(value), file_(parent.file_), path_(std::move(path)), problems_(parent.problems_) {}
  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  const Json* value_;  // null: absent
  std::shared_ptr<const std::string> file_;
  std::string path_;
  std::vector<Diagnostic>* problems_;
};

// Returns the text of an optional field, or "".
inline std::string text_or_empty(const JsonField& field, const std::string& key) {
  const JsonField value = field.optional(key);
  return value.present() ? value.text() : "";
}

// Reads a document, which must outlive it, and reports all its mistakes together.
class Reading {
 public:
  Reading(const JsonField::Json& document, const std::string& file) : root_(document, file, problems_) {}
  const JsonField& root() const { return root_; }
  // Throws InputError with all that was missing or wrong so far.
  void finish() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::vector<Diagnostic> problems_;
  JsonField root_;
};

// The field of a page's document that says what had no room there: the number of missing entries by path.
inline constexpr std::string_view kLeftOut = "left_out";

// The marks between which a page (reports/pages) carries its document.
inline constexpr std::string_view kPageBegin = "<!doctype html>";
inline constexpr std::string_view kPageDocumentBegin = "<script type=\"application/json\" id=\"tandem-document\">";
inline constexpr std::string_view kPageDocumentEnd = "</script>";

// Parses a document, or the document that a page carries. Throws InputError with the place where the text stops being
// JSON.
JsonField::Json parse_json(std::string_view text, const std::string& file);

}  // namespace tandem
