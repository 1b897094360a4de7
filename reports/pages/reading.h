// Reads a document for its page, and reports all its mistakes together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/json_fields.h"
#include "reports/pages/sections.h"

namespace tandem::pages {

class Reading {
 public:
  Reading(const Json& document, const std::string& file) : root_(document, file, problems_) {}
  const JsonField& root() const { return root_; }
  // Throws InputError with all that was missing or wrong so far.
  void finish() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::vector<Diagnostic> problems_;
  JsonField root_;
};

// Returns the text of an optional field, or "".
inline std::string text_or_empty(const JsonField& field, const std::string& key) {
  const JsonField value = field.optional(key);
  return value.present() ? value.text() : "";
}

}  // namespace tandem::pages
