// Named sizes of a model file, such as `tokens` and `hidden`, and the expressions of them in its layers: "hidden", "4 *
// hidden", "hidden / heads", "vocabulary + 2". A scenario may give the names other values.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "topologies/base/strict_yaml.h"

namespace tandem {

class ModelSizes {
 public:
  // Reads `sizes` of a model file and replaces those that `chosen` names. Reports names that the file does not have to
  // `map`.
  ModelSizes(const YamlReader& map, const std::map<std::string, std::int64_t>& chosen);

  // Returns whether every name has the value of the file.
  bool is_as_in_file() const { return is_as_in_file_; }
  // Returns a whole number or the value of an expression; reports what is neither, or out of range.
  std::int64_t read(const YamlReader& value, std::int64_t least, std::int64_t most, std::int64_t otherwise) const;
  // Reports the names in `map`, which is `sizes`, that no expression had. Call it after everything has been read.
  void report_unused(const YamlReader& map) const;

 private:
  std::map<std::string, std::int64_t> values_;
  mutable std::set<std::string> used_;
  bool is_as_in_file_ = true;
};

}  // namespace tandem
