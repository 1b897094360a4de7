// Runs the built `tandem` as people and CI do, and keeps what it prints.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem {

struct Outcome {
  int exit_code = -1;  // of a process ended by a signal: 128 + its number
  std::string out;
  std::string err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }  // throws unless stdout is one document
};

// A test with an empty folder of its own as the working directory of the commands.
class CommandLine : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  Outcome tandem(const std::vector<std::string>& arguments) const;
  // With the text on the standard input.
  Outcome tandem_reading(const std::string& text, const std::vector<std::string>& arguments) const;
  // Starts the command with a signal that has come already and is blocked.
  Outcome tandem_with_pending(int signal, const std::vector<std::string>& arguments) const;
  // Starts the command with a signal ignored, and sends it that signal once it handles others.
  Outcome tandem_with_ignored(int signal, const std::vector<std::string>& arguments) const;
  // Sends the signal, by default that of Ctrl-C, `after_s` seconds after the command has begun to handle signals.
  Outcome tandem_interrupted(const std::vector<std::string>& arguments, double after_s, int signal = SIGINT) const;

  // Whether this machine has pseudo-terminals, as a container without devpts has not.
  static bool has_terminals();
  // Has a terminal as stderr. Ends the command once that shows `text`, or after a while without it, and returns what it
  // has shown.
  std::string shown_on_terminal(const std::vector<std::string>& arguments, const std::string& text) const;

  std::string write(const std::string& name, const std::string& text) const;  // returns the name
  std::string read(const std::string& name) const;
  const std::filesystem::path& folder() const { return folder_; }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  // A quick training on this machine's CPU: 12 steps, the first 2 of them warm-up. Returns its file name.
  std::string write_small_scenario(const std::string& more = "") const;
  static std::string example(const std::string& name);  // the path of a scenario that comes with Tandem

  // A quick calibration of two devices of this machine. It is made once for all tests of a build, which keep the
  // machine busy: they look at what is printed, not at how right it is. Returns its file name.
  std::string calibrated_machine() const;

 private:
  std::filesystem::path folder_;
};

}  // namespace tandem
