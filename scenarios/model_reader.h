// Reads a model from a file that is open already.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scenarios/import/input_file.h"
#include "scenarios/model.h"

namespace tandem {

// Does what read_model() does with the path of the file.
Model read_model(const InputFile& file, const std::map<std::string, std::int64_t>& sizes);

}  // namespace tandem
