// JSON documents that are kept in files: how their text is read, and where their values are in it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/error.h"

namespace tandem {

// What a page (reports/pages) begins with. Pages are for people, and are refused where a document is expected.
inline constexpr std::string_view kPageBegin = "<!doctype html>";

// Where a document comes from, for messages about it.
class JsonOrigin {
 public:
  using Json = nlohmann::ordered_json;

  // A document that was made in memory. Its values have no place.
  JsonOrigin(std::string name) : file_(std::move(name)) {}  // NOLINT(google-explicit-constructor): a name is enough
  JsonOrigin(const char* name) : file_(name) {}             // NOLINT(google-explicit-constructor)
  // The text of a file, which is a document or one line of a file of documents.
  JsonOrigin(std::string file, std::string_view text, int line = 1);

  const std::string& file() const { return file_; }

  // Reads the document. Throws InputError for a page, and where the text stops being JSON, gives a key twice, is nested
  // deeper than JsonStream allows, or is not UTF-8. Without a text the document is empty.
  Json parse() const;

  // Returns the places of values of the document that parse() returned, all in one pass over the text.
  std::vector<FilePlace> places(const Json& document, std::span<const Json* const> values) const;

 private:
  std::string file_;
  std::shared_ptr<const std::string> text_;  // null: made in memory
  FilePlace begin_{.line = 1, .column = 1};  // of the text in the file
};

// Reads a document: JsonOrigin(file, text).parse().
JsonOrigin::Json parse_json(std::string_view text, const std::string& file);

}  // namespace tandem
