#include "scenarios/validation/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/estimates/link_limits.h"
#include "scenarios/fitting/collective_calibration.h"
#include "scenarios/validation/ledger/ledger_tables.h"
#include "scenarios/validation/ledger/mlperf_results.h"
#include "scenarios/validation/rules.h"
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

// "line 12, rows[3].time_us: must be greater than 0, found -1 (and 2 more problems)"
std::string first_problem(const InputError& error) {
  const Diagnostic& first = error.diagnostics().front();
  std::string text;
  if (first.line > 0) text += fmt::format("line {}, ", first.line);
  if (!first.path.empty()) text += first.path + ": ";
  text += first.message;
  if (const auto more = error.diagnostics().size() - 1; more > 0)
    text += fmt::format(" (and {} more problem{})", more, more == 1 ? "" : "s");
  return text;
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
        ++read_;
      } catch (const InputError& error) {
        for (const Diagnostic& diagnostic : error.diagnostics()) problems_.add(diagnostic);
        result_.left_out.push_back({name_of(path), "cannot be read: " + first_problem(error)});
      }
    }
    if (read_ == 0) problems_.throw_if_any();
    return std::move(measurements_);
  }

 private:
  std::string name_of(const fs::path& path) const { return path.lexically_relative(folder_).generic_string(); }

  void read_file(const fs::path& path) {
    const std::string text = read_input_file(path);
    const std::string name = name_of(path);
    if (validation::is_ledger_file(text)) {
      validation::LedgerTables ledger =
          validation::tables_of_ledger(validation::parse_ledger(text, path.string()), name);
      measurements_.training.emplace_back(name, std::move(ledger.tables));
      std::ranges::move(ledger.left_out, std::back_inserter(result_.left_out));
    } else if (validation::is_training_file(text)) {
      measurements_.training.emplace_back(name, validation::parse_training(text, path.string()));
    } else if (validation::is_measurement_file(text) && text.find("\"collective\"") != text.npos) {
      measurements_.collectives.push_back(validation::parse_measurements(text, path.string()));
      validation::MeasurementFile& file = measurements_.collectives.back();
      file.file = name;
      for (const std::string& note : file.notes) result_.notes.push_back({name, note});
    } else {
      result_.left_out.push_back({name, "has neither a 'collective' nor a 'workload'"});
    }
  }

  const fs::path folder_;
  Validation& result_;
  Diagnostics problems_;
  int read_ = 0;  // files
  FolderContent measurements_;
};

// Returns the tables whose times are too short for the links of the machine that their file names.
std::vector<std::string> contradictions_in(const std::vector<validation::MeasurementFile>& files) {
  std::vector<std::string> lines;
  for (const validation::MeasurementFile& file : files) {
    for (const validation::MeasuredTable& measured : file.tables) {
      if (!measured.machine || !validation::left_out_by(file, measured).empty()) continue;
      if (measured.machine->transport == "socket") continue;  // a rate of the host's software is no bound
      const CollectiveTable& table = measured.table;
      std::vector<CollectiveSample> samples;
      for (const CollectiveRow& row : table.rows) {
        if (row.time_us() <= 0) continue;
        samples.push_back(
            {.operation = table.operation, .bytes = static_cast<double>(row.bytes), .time_s = row.time_us() * 1e-6});
      }
      const auto line = contradiction_of(*kind_of_operation(table.operation), measured.machine->nodes, table.devices,
                                         samples, calibration::LinkLimits(*measured.machine->topology));
      if (line) lines.push_back(fmt::format("{}: {}", file.file, *line));
    }
  }
  return lines;
}

// Says what a protocol needs that no table of the folder has.
std::string nothing_by(validation::Protocol protocol) {
  using validation::Protocol;
  switch (protocol) {
    case Protocol::links:
      return "no file names its machine well enough to simulate it";
    case Protocol::sizes:
      return "no table of collectives has three sizes, of which it fits every other one";
    case Protocol::ranks:
      return "no file has tables of one collective on different numbers of devices of one node";
    case Protocol::nodes:
      return "no table of several nodes has one of a single such node, with as many devices of each, beside it";
    case Protocol::first_row:
      return "no training table has a row of one device and another one";
  }
  TANDEM_UNREACHABLE("a Protocol outside its enumerators");
}

// Appends reasons, but only once if one holds for several tables of a file.
void append(std::vector<LeftOut>& to, const std::vector<LeftOut>& from) {
  for (const LeftOut& left : from) {
    const bool is_known = !to.empty() && to.back().file == left.file && to.back().why == left.why;
    if (!is_known) to.push_back(left);
  }
}

void replay(const std::string& file, const std::vector<validation::TrainingTable>& tables,
            validation::Protocol protocol, Validation& result) {
  try {
    const validation::TrainingReplay replay =
        validation::replay_training(file, tables, protocol == validation::Protocol::first_row);
    result.training.insert(result.training.end(), replay.points.begin(), replay.points.end());
    append(result.left_out, replay.left_out);
  } catch (const InputError& error) {
    result.left_out.push_back({file, "cannot be simulated: " + first_problem(error)});
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
    result.contradictions = contradictions_in(measured.collectives);
  }
  if (protocol == Protocol::first_row || protocol == Protocol::links) {
    for (const auto& [file, tables] : measured.training) replay(file, tables, protocol, result);
  }
  if (result.points.empty() && result.training.empty()) result.nothing = nothing_by(protocol);
  return result;
}

Validation validate_mlperf(const fs::path& folder, validation::Protocol protocol,
                           const std::function<void(int, int)>& progress) {
  Validation result;
  result.protocol = validation::name_of(protocol);
  const auto benchmarks = validation::read_mlperf(folder);
  int done = 0;
  for (const auto& [benchmark, rows] : benchmarks) {
    const validation::LedgerTables ledger = validation::tables_of_ledger(rows, benchmark);
    append(result.left_out, ledger.left_out);
    replay(benchmark, ledger.tables, protocol, result);
    if (progress) progress(++done, static_cast<int>(benchmarks.size()));
  }
  if (result.training.empty()) result.nothing = "no result has all that a prediction needs";
  return result;
}

}  // namespace tandem
