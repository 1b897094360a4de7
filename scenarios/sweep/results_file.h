// The file that keeps the finished points of a sweep: JSON lines, the first of which says whose they are. A line is
// written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "reports/sweep_table.h"

namespace tandem {

// Whose results they are. Those of another scenario or another version are refused.
struct SweepIdentity {
  std::string scenario;
  std::string hash;
};

struct StoredPoint {
  SweptPoint point;
  std::string files;  // SweepSpace::files_hash()
};

struct StoredPoints {
  std::vector<StoredPoint> points;
  std::uint64_t whole_bytes = 0;  // of the lines that are whole
  bool is_cut = false;            // the last line is not
};

std::string line_of(const SweptPoint& point, const std::string& files_hash);
StoredPoint point_of_line(std::string_view line, const std::string& file, int number);  // throws InputError

// Reads what a file has; nothing if it is not there or has not even a whole first line. Throws InputError for a file
// that is something else, or of another scenario or version, and for a broken line before the last one.
StoredPoints read_results(const std::filesystem::path& file, const SweepIdentity& identity);

// Writes to the end of such a file. Nobody else can write to it meanwhile.
class ResultsFile {
 public:
  // Throws what read_results() throws, and Error if the file cannot be written or somebody else writes to it.
  ResultsFile(std::filesystem::path file, const SweepIdentity& identity);
  ~ResultsFile();
  ResultsFile(const ResultsFile&) = delete;
  ResultsFile& operator=(const ResultsFile&) = delete;

  const std::filesystem::path& path() const { return file_; }
  const StoredPoints& stored() const { return stored_; }
  // Throws Error; the file is then as before.
  void add(const std::string& line);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool is_regular_ = false;
  StoredPoints stored_;
};

}  // namespace tandem
