// Job configurations of torchtitan that are written as Python (config_registry.py), in the form of its older TOML
// files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/import/base/input_file.h"

namespace tandem {

struct TitanPython {
  std::string toml;  // a line for each key
  struct Place {
    int line = 1, column = 1;
  };
  std::vector<Place> places{};            // of each of these lines, in the Python file
  std::map<std::string, Place> unread{};  // by key, "training.seq_len": values that are no literals
  std::vector<std::string> left_out{};    // statements
};

// Whether the beginning of a file is such a configuration.
bool is_titan_python(std::string_view text);

// `name`: the configuration's, as --config gives it to torchtitan; empty: the only one. Throws InputError.
TitanPython read_titan_python(const InputFile& file, const std::string& name);

}  // namespace tandem
