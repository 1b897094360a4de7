#include "tests/kills/kill_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

namespace tandem::kills {
namespace {

constexpr int kCommands = 8;

struct Row {
  int kills = 0, broken = 0, lost = 0;
  double worst_s = 0;
  std::map<int, int> codes;
};

std::map<std::pair<std::string, int>, Row>& rows() {
  static std::map<std::pair<std::string, int>, Row> all;
  return all;
}

class Table : public testing::Environment {
 public:
  void TearDown() override {
    if (rows().empty()) return;
    fmt::print("{:<28} {:<6} {:>5} {:>8} {:>6} {:>5}  exit codes\n", "command", "signal", "kills", "worst s", "broken",
               "lost");
    for (const auto& [key, row] : rows()) {
      std::string codes;
      for (const auto& [code, times] : row.codes) codes += fmt::format(" {} x{}", code, times);
      fmt::print("{:<28} {:<6} {:>5} {:>8.2f} {:>6} {:>5} {}\n", key.first, name_of_signal(key.second), row.kills,
                 row.worst_s, row.broken, row.lost, codes);
    }
  }
};

const testing::Environment* const table = testing::AddGlobalTestEnvironment(new Table);

}  // namespace

double seconds_of_a_command() {
  const char* stated = std::getenv("TANDEM_KILL_SECONDS");
  constexpr double kUsual_s = 24;
  return (stated != nullptr ? std::stod(stated) : kUsual_s) / kCommands;
}

std::string name_of_signal(int signal) {
  return sigabbrev_np(signal);
}

void note_kill(const std::string& command, int signal, const Death& death) {
  Row& row = rows()[{command, signal}];
  ++row.codes[death.exit_code];
  if (!death.was_sent) return;
  ++row.kills;
  row.worst_s = std::max(row.worst_s, death.seconds);
}

void note_broken_file(const std::string& command, int signal) {
  ++rows()[{command, signal}].broken;
}

void note_lost_line(const std::string& command, int signal) {
  ++rows()[{command, signal}].lost;
}

}  // namespace tandem::kills
