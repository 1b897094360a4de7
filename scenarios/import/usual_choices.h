// The settings of an imported scenario that neither its file nor an option gives.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/import/choices.h"

namespace tandem {

inline constexpr std::string_view kUsualMachine = "hgx-h100";
inline constexpr int kUsualDevices = 8;

// Chooses the settings that the file does not give, and notes them.
class Choices {
 public:
  Choices(const ImportChoices& options, std::vector<std::string>& assumed) : options_(options), assumed_(assumed) {}

  std::string word(const std::string& stated, std::string usual, const char* what, const char* option) {
    if (!stated.empty()) return stated;
    note(fmt::format("{} {} ({})", what, usual, option));
    return usual;
  }
  int number(int stated, int usual, const char* what, const char* option) {
    if (stated > 0) return stated;
    note(fmt::format("{} {} ({})", what, usual, option));
    return usual;
  }
  void note(std::string sentence) { assumed_.push_back(std::move(sentence)); }
  const ImportChoices& options() const { return options_; }

 private:
  const ImportChoices& options_;
  std::vector<std::string>& assumed_;
};

}  // namespace tandem
