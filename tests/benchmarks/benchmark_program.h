// Runs the benchmarks of a program that is built with Google Benchmark, each in a process of its own, so that no
// benchmark depends on those before it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

// What one benchmark reported.
struct BenchmarkRun {
  std::map<std::string, double> exact{};  // counters whose names begin with "exact."
  double cpu_ns = 0;                      // of one iteration: CPU time of the thread that has the benchmark's State
  double real_ns = 0;                     // of one iteration, on the clock
};

// Benchmarks that a set leaves out, each with the reason.
struct LeftOut {
  std::string pattern;  // a regular expression that matches the whole name
  std::string reason;
};

class BenchmarkProgram {
 public:
  // `stored` names the set: exact/sim.json is that of "sim", whose benchmarks left out are those that left_out.json in
  // the same folder has under this name.
  // Throws std::runtime_error where a file cannot be read, a pattern matches no benchmark, or the program fails.
  BenchmarkProgram(std::string program, const std::string& stored);

  const std::string& set() const { return set_; }
  const std::vector<std::string>& benchmarks() const { return benchmarks_; }        // without those left out
  const std::map<std::string, std::string>& left_out() const { return left_out_; }  // reasons by benchmark
  const std::string& build() const { return build_; }  // of the program: compiler and libraries; known after a run

  // One iteration, or as many as the benchmark asks for. Throws std::runtime_error if it fails.
  BenchmarkRun run_once(const std::string& benchmark);

  // Medians of three launches of 0.1 s, or one iteration, each.
  BenchmarkRun measure(const std::string& benchmark);

 private:
  nlohmann::json run(const std::string& benchmark, const char* length);
  std::string output_of(const std::string& arguments) const;

  std::string program_, set_, build_;
  std::vector<std::string> benchmarks_;
  std::map<std::string, std::string> left_out_;
};

}  // namespace tandem
