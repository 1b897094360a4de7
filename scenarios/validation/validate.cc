#include "scenarios/validation/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/validation/training.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> json_files(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw InputError({{.file = folder.string(), .path = "", .message = "is no folder of measurements"}});
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw InputError({{.file = folder.string(), .path = "", .message = "holds no .json file of measurements"}});
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The content of a folder; files are named by their paths below it.
struct FolderContent {
  std::vector<validation::MeasurementFile> collectives;
  std::vector<std::pair<std::string, std::vector<validation::TrainingTable>>> training;
};

class FolderReader {
 public:
  FolderReader(fs::path folder, Validation& result) : folder_(std::move(folder)), result_(result) {}

  FolderContent read() {
    for (const fs::path& path : json_files(folder_)) {
      try {
        read_file(path);
      } catch (const InputError& error) {
        for (const Diagnostic& diagnostic : error.diagnostics()) problems_.add(diagnostic);
      }
    }
    problems_.throw_if_any();
    return std::move(measurements_);
  }

 private:
  void read_file(const fs::path& path) {
    const std::string text = read_input_file(path);
    const std::string name = path.lexically_relative(folder_).generic_string();
    if (validation::is_training_file(text)) {
      measurements_.training.emplace_back(name, validation::parse_training(text, path.string()));
    } else if (validation::is_measurement_file(text) && text.find("\"collective\"") != text.npos) {
      measurements_.collectives.push_back(validation::parse_measurements(text, path.string()));
      measurements_.collectives.back().file = name;
    } else {
      result_.left_out.push_back({name, "has neither a 'collective' nor a 'workload'"});
    }
  }

  const fs::path folder_;
  Validation& result_;
  Diagnostics problems_;
  FolderContent measurements_;
};

// Appends reasons, but only once if one holds for several tables of a file.
void append(std::vector<LeftOut>& to, const std::vector<LeftOut>& from) {
  for (const LeftOut& left : from) {
    const bool is_known = !to.empty() && to.back().file == left.file && to.back().why == left.why;
    if (!is_known) to.push_back(left);
  }
}

}  // namespace

Validation validate_folder(const fs::path& folder, validation::Protocol protocol,
                           const std::function<void(int, int)>& progress) {
  Validation result;
  result.protocol = validation::name_of(protocol);
  using validation::Protocol;
  const FolderContent measured = FolderReader(folder, result).read();
  if (protocol != Protocol::first_row) {
    validation::Replay replay = validation::replay_collectives(measured.collectives, progress);
    result.points = validation::predict(protocol, replay.tables);
    append(result.left_out, replay.left_out);
  }
  if (protocol != Protocol::first_row && protocol != Protocol::links) return result;
  for (const auto& [file, tables] : measured.training) {
    const validation::TrainingReplay replay =
        validation::replay_training(file, tables, protocol == Protocol::first_row);
    result.training.insert(result.training.end(), replay.points.begin(), replay.points.end());
    append(result.left_out, replay.left_out);
  }
  return result;
}

}  // namespace tandem
