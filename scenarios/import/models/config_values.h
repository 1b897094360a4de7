// The values of a configuration. A value is found under any of its names, and problems are reported with their place.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/json_value.h"
#include "scenarios/import/models/family_defaults.h"
#include "topologies/base/error.h"

namespace tandem {

class ConfigValues {
 public:
  using Names = std::initializer_list<std::string_view>;

  // `object` must outlive this. `path` names the object in messages; if it is empty, the object is the document.
  ConfigValues(const JsonValue& object, std::string file, std::string path = "");

  // Sets the sizes to use where the object has none, by the first of their names.
  void set_defaults(const SizeDefaults& defaults) { defaults_ = &defaults; }

  const JsonValue& object() const { return *object_; }
  const std::string& file() const { return file_; }

  // Returns the first of these that is present and not null.
  const JsonValue* find(Names names) const;
  bool has(Names names) const { return find(names) != nullptr; }
  // Returns the keys of the object that nobody has asked for and whose values say something: neither null, false, 0 nor
  // empty.
  std::vector<std::string> unused() const;
  std::optional<ConfigValues> map(Names names) const;

  // Return whole numbers, at least 1 (size) or 0 (count). Throw InputError for anything else.
  std::int64_t size(Names names) const;  // required
  std::int64_t size(Names names, std::int64_t otherwise) const;
  std::int64_t count(Names names, std::int64_t otherwise) const;
  // Also reads a list that says the same number for every layer.
  std::int64_t count_of_layers(Names names, std::int64_t otherwise) const;
  bool boolean(Names names, bool otherwise) const;
  double number(Names names, double otherwise) const;
  std::string text(Names names, std::string_view otherwise = "") const;
  std::vector<std::string> texts(Names names) const;
  std::vector<std::int64_t> counts(Names names) const;

  [[noreturn]] void fail(const JsonValue& at, std::string_view name, const std::string& message) const;
  // Returns a key, or where it is missing the object, as the place of a problem without a message.
  Diagnostic place_of(std::string_view name) const;

 private:
  std::string path_of(std::string_view name) const;
  std::int64_t whole(Names names, std::int64_t least, std::int64_t otherwise) const;
  std::optional<std::int64_t> default_of(Names names) const;
  std::string_view name_of(Names names, const JsonValue& value) const;

  const JsonValue* object_;
  std::string file_, path_;
  const SizeDefaults* defaults_ = nullptr;
  std::shared_ptr<std::set<const JsonValue*>> used_;  // shared by copies
};

}  // namespace tandem
