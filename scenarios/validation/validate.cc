#include "scenarios/validation/validate.h"

#include <fmt/format.h>

#include <algorithm>

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

class FolderReader {
 public:
  FolderReader(fs::path folder, Validation& result) : folder_(std::move(folder)), result_(result) {}

  std::vector<validation::MeasurementFile> read() {
    std::vector<validation::MeasurementFile> files;
    for (const fs::path& path : json_files(folder_)) {
      try {
        const std::string text = read_input_file(path);
        if (!validation::is_measurement_file(text)) {
          leave_out(path, "is no file of measurements");
          continue;
        }
        files.push_back(validation::parse_measurements(text, path.string()));
        files.back().file = name_of(path);
      } catch (const InputError& error) {
        for (const Diagnostic& diagnostic : error.diagnostics()) problems_.add(diagnostic);
      }
    }
    problems_.throw_if_any();
    return files;
  }

 private:
  std::string name_of(const fs::path& path) const { return path.lexically_relative(folder_).generic_string(); }
  void leave_out(const fs::path& path, std::string why) { result_.left_out.push_back({name_of(path), std::move(why)}); }

  const fs::path folder_;
  Validation& result_;
  Diagnostics problems_;
};

}  // namespace

Validation validate_folder(const fs::path& folder, validation::Protocol protocol,
                           const std::function<void(int, int)>& progress) {
  Validation result;
  result.protocol = validation::name_of(protocol);
  const std::vector<validation::MeasurementFile> files = FolderReader(folder, result).read();
  validation::Replay replay = validation::replay_collectives(files, progress);
  result.points = validation::predict(protocol, replay.tables);
  result.left_out.insert(result.left_out.end(), replay.left_out.begin(), replay.left_out.end());
  return result;
}

}  // namespace tandem
