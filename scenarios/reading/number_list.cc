#include "scenarios/reading/number_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "scenarios/import/base/input_file.h"

namespace tandem {

std::vector<double> read_number_list(const std::filesystem::path& path, const ListedNumber& number) {
  const std::string text = InputFile(path).text();
  constexpr std::string_view kBetween = " \t\r,";
  std::vector<double> numbers;
  Diagnostics problems;
  int line = 1;
  std::size_t begin_of_line = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      ++line;
      begin_of_line = ++at;
    } else if (kBetween.find(text[at]) != std::string_view::npos) {
      ++at;
    } else {
      const std::size_t end = std::min(text.find_first_of(" \t\r,\n", at), text.size());
      const std::string_view word = std::string_view(text).substr(at, end - at);
      double count = 0;
      const auto [read, error] = std::from_chars(word.data(), word.data() + word.size(), count);
      const bool is_count = error == std::errc{} && read == word.data() + word.size() && count >= number.least &&
                            count <= number.most && (!number.is_whole || count == std::floor(count));
      if (!is_count) {
        problems.add({path.string(), line, static_cast<int>(at - begin_of_line) + 1, "",
                      fmt::format("expected {}, found '{}'", number.what, word.substr(0, 40))});
      }
      numbers.push_back(count);
      at = end;
    }
  }
  if (numbers.empty()) problems.add({path.string(), 1, 1, "", fmt::format("holds no {}", number.whole)});
  problems.throw_if_any();
  return numbers;
}

}  // namespace tandem
