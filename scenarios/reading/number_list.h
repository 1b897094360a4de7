// Numbers in a file, with white space or commas between them.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace tandem {

// What such a number is, for messages, and the numbers that are allowed.
struct ListedNumber {
  std::string_view what;   // "how many rows an expert gets"
  std::string_view whole;  // "numbers of rows": what a file without numbers lacks
  double least = 0, most = 1e15;
  bool is_whole = false;
};

// Throws one InputError with all that are none.
std::vector<double> read_number_list(const std::filesystem::path& path, const ListedNumber& number);

}  // namespace tandem
