// Reads models: docs/workloads.md describes their files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "strategies/model/model.h"

namespace tandem {

class InputFile;

// Reads a model file, or a config.json of Hugging Face. `sizes` replace values under `sizes` of the file, by their
// names. Throws InputError with every problem.
Model read_model(const std::filesystem::path& path, const std::map<std::string, std::int64_t>& sizes = {});
// Does the same with a file that is open already.
Model read_model(const InputFile& file, const std::map<std::string, std::int64_t>& sizes);

// Returns the models that come with Tandem, sorted: "bert_large", "resnet50", ...
std::vector<std::string> packaged_models();

}  // namespace tandem
