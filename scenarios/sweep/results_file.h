// The file that keeps the finished points of a sweep: JSON lines, the first of which names the sweep. A line is written
// whole or not at all.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/sweep/sweep_table.h"

namespace tandem {

// Identifies the sweep. Results of another scenario or another version are refused.
struct SweepIdentity {
  std::string scenario;
  std::string hash;
};

struct StoredPoint {
  SweptPoint point;
  std::string files;  // SweepSpace::files_hash()
};

// What a plan keeps beside results of points. It begins with kLineOfPlans, and sweeps pass it over.
struct LineOfPlan {
  std::string text;
  std::string file;
  int number = 0;  // in the file, from 1
};

struct StoredPoints {
  std::vector<StoredPoint> points;
  std::vector<LineOfPlan> of_plans;
  std::uint64_t whole_bytes = 0;  // size of the complete lines
  bool is_cut = false;            // the last line is incomplete
};

inline constexpr std::string_view kLineOfPlans = R"({"plan":)";

std::string line_of(const SweptPoint& point, const std::string& files_hash);
StoredPoint point_of_line(std::string_view line, const std::string& file, int number);  // throws InputError

// Reads the points of a file; none if it does not exist or does not have a complete first line. Throws InputError for a
// file of another kind, or of another scenario or version, and for a broken line before the last one.
StoredPoints read_results(const std::filesystem::path& file, const SweepIdentity& identity);

// Reads a file to which another process may be writing.
class ResultsReader {
 public:
  ResultsReader(std::filesystem::path file, SweepIdentity identity)
      : file_(std::move(file)), identity_(std::move(identity)) {}
  // Returns what has been appended since the last call, or everything if the file is another one by now. Throws what
  // read_results() does.
  StoredPoints more();

 private:
  std::filesystem::path file_;
  SweepIdentity identity_;
  std::uint64_t file_id_ = 0, whole_bytes_ = 0;  // of what was read
  int lines_ = 0;
};

// Appends to such a file, which nobody else can write meanwhile.
class ResultsFile {
 public:
  // How long another one may still write: a sweep that was asked to stop ends once its points under way have.
  static constexpr std::chrono::milliseconds kPatience{5000};

  // Throws what read_results() throws, Error if the file cannot be written or another one goes on writing it, and what
  // `tick` throws, which is called while it waits.
  ResultsFile(std::filesystem::path file, const SweepIdentity& identity, std::chrono::milliseconds patience = kPatience,
              const std::function<void()>& tick = {});
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  const std::filesystem::path& path() const { return file_; }
  const StoredPoints& stored() const { return stored_; }
  // Throws Error, and then leaves the file as it was.
  void add(const std::string& line);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  StoredPoints stored_;
};

}  // namespace tandem
