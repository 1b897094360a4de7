// docs/tensorflow.md against the headers: the tables with the columns TensorFlow, Tandem, header and remark must name
// what the headers declare, and must have every name of tensorflow_names.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace tandem {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TANDEM_SOURCE_DIR;

std::string contents(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Row {
  int line = 0;
  std::string tensorflow, tandem, header, remark;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

// The rows of all tables with these four columns.
std::vector<Row> rows() {
  std::vector<Row> found;
  std::ifstream in(kRoot / "docs/tensorflow.md");
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.starts_with("|")) {
      inside = false;
    } else if (line == "| TensorFlow | Tandem | header | remark |") {
      inside = true;
    } else if (inside && !line.starts_with("|---")) {
      std::vector<std::string> cells = cells_of(line);
      cells.resize(4);
      found.push_back(
          {.line = number, .tensorflow = cells[0], .tandem = cells[1], .header = cells[2], .remark = cells[3]});
    }
  }
  return found;
}

std::vector<std::string> code_in(const std::string& cell) {
  static const std::regex quoted("`([^`]+)`");
  std::vector<std::string> found;
  for (std::sregex_iterator match(cell.begin(), cell.end(), quoted), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

std::string without_comments(const std::string& source) {
  std::istringstream in(source);
  std::string text;
  for (std::string line; std::getline(in, line);) text += line.substr(0, line.find("//")) + "\n";
  return text;
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_words(const std::string& code, const std::string& words) {
  for (auto at = code.find(words); at != std::string::npos; at = code.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    if ((at == 0 || !is_word_character(code[at - 1])) && (end == code.size() || !is_word_character(code[end]))) {
      return true;
    }
  }
  return false;
}

// A type is declared by its keyword; anything else counts as declared where it is a word of the code.
bool declares(const std::string& code, const std::string& name) {
  if (std::isupper(static_cast<unsigned char>(name.front())) == 0) return has_words(code, name);
  for (const char* keyword : {"class ", "struct ", "using "}) {
    if (has_words(code, keyword + name)) return true;
  }
  return false;
}

std::string missing_in(const std::string& code, const std::string& qualified) {
  const auto separator = qualified.find("::");
  std::string first = qualified.substr(0, separator);
  if (!declares(code, first)) return first;
  if (separator == std::string::npos) return "";
  const std::string second = qualified.substr(separator + 2);
  return declares(code, second) ? "" : qualified;
}

fs::path header_of(const Row& row) {
  const std::vector<std::string> headers = code_in(row.header);
  if (headers.size() != 1) return {};
  const fs::path below = kRoot / "strategies" / headers.front();
  return fs::exists(below) ? below : kRoot / headers.front();
}

void check_row(const Row& row) {
  EXPECT_FALSE(row.tensorflow.empty());
  if (row.tandem == "absent") {
    EXPECT_EQ(row.header, "");
    EXPECT_FALSE(row.remark.empty()) << "does not say why it is absent";
    return;
  }
  const fs::path header = header_of(row);
  EXPECT_TRUE(fs::is_regular_file(header)) << "'" << row.header << "' is no header";
  const std::string code = without_comments(contents(header));
  EXPECT_FALSE(code_in(row.tandem).empty());
  for (const std::string& name : code_in(row.tandem)) {
    EXPECT_EQ(missing_in(code, name), "") << "is not declared in " << row.header;
  }
}

TEST(Tensorflow, EveryRowNamesWhatItsHeaderDeclares) {
  ASSERT_FALSE(rows().empty());
  for (const Row& row : rows()) {
    SCOPED_TRACE("docs/tensorflow.md:" + std::to_string(row.line) + ": " + row.tensorflow);
    check_row(row);
  }
}

TEST(Tensorflow, ThePageCountsItsRows) {
  const std::vector<Row> all = rows();
  const auto absent = std::count_if(all.begin(), all.end(), [](const Row& row) { return row.tandem == "absent"; });
  const auto with = static_cast<std::ptrdiff_t>(all.size()) - absent;
  const std::string counts = "of " + std::to_string(all.size()) + " rows, " + std::to_string(with) +
                             " have a counterpart, and " + std::to_string(absent) + " are absent";
  EXPECT_NE(contents(kRoot / "docs/tensorflow.md").find(counts), std::string::npos) << counts;
}

TEST(Tensorflow, EveryNameOfTheFivePagesHasARow) {
  std::set<std::string> explained;
  for (const Row& row : rows()) {
    for (const std::string& name : code_in(row.tensorflow)) explained.insert(name);
  }
  std::ifstream in(kRoot / "tests/docs/tensorflow_names.txt");
  int names = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    ++names;
    EXPECT_TRUE(explained.contains(line)) << line << " has no row in docs/tensorflow.md";
  }
  EXPECT_GT(names, 200);
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// The areas in the line of the page that begins with `start`.
std::set<std::string> areas_after(const std::string& start) {
  std::istringstream in(contents(kRoot / "docs/tensorflow.md"));
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(start)) continue;
    const std::vector<std::string> areas = code_in(line);
    return {areas.begin(), areas.end()};
  }
  ADD_FAILURE() << "docs/tensorflow.md has no line that begins with " << start;
  return {};
}

TEST(Tensorflow, ThePageNamesTheAreasOfPureCases) {
  std::set<std::string> all, some;
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/conformance/cases")) {
    const std::string cases = contents(entry.path());
    const std::size_t pure = occurrences(cases, "   \"pure\": true");
    if (pure == 0) continue;
    (pure == occurrences(cases, "   \"id\": ") ? all : some).insert(entry.path().stem());
  }
  EXPECT_EQ(areas_after("- All cases of these areas are pure:"), all);
  EXPECT_EQ(areas_after("- Some cases of these areas are pure:"), some);
}

}  // namespace
}  // namespace tandem
