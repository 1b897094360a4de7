#include "scenarios/scenario/labelled_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr int kMostClasses = 100000;
constexpr int kTestEvery = 5;  // rows, of which the last is for testing

class RowsReader {
 public:
  explicit RowsReader(std::string file) : file_(std::move(file)) {}

  LabelledRows read(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      begin = end + 1;
      if (!line.empty()) read_row(line);
    }
    if (rows_.labels.empty() && problems_.empty()) problem(0, "holds no rows");
    problems_.throw_if_any();
    scale();
    return std::move(rows_);
  }

 private:
  void problem(int column, std::string message) {
    problems_.add({file_, std::max(1, line_), std::max(1, column), "", std::move(message)});
  }

  void read_row(std::string_view line) {
    std::vector<float> fields;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      fields.push_back(field(line.substr(begin, end - begin), static_cast<int>(begin) + 1));
      begin = end + 1;
    }
    label_column_ = static_cast<int>(line.rfind(',') + 1) + 1;  // without a comma: 1
    const int columns = static_cast<int>(fields.size()) - 1;
    if (rows_.columns == 0) rows_.columns = columns;
    if (columns < 1) return problem(1, "needs at least one value and a class, separated by commas");
    if (columns != rows_.columns) {
      return problem(1, fmt::format("has {} fields, the first row has {}", columns + 1, rows_.columns + 1));
    }
    add(fields);
  }

  float field(std::string_view text, int column) {
    float value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
      problem(column, fmt::format("expected a number, found '{}'", text.substr(0, 40)));
      return 0;
    }
    return value;
  }

  void add(const std::vector<float>& fields) {
    const float label = fields.back();
    if (label < 0 || label >= kMostClasses || label != std::floor(label)) {
      return problem(label_column_,
                     fmt::format("the class must be a whole number from 0 to {}, found {}", kMostClasses - 1, label));
    }
    rows_.values.insert(rows_.values.end(), fields.begin(), fields.end() - 1);
    rows_.labels.push_back(static_cast<std::int32_t>(label));
    rows_.classes = std::max(rows_.classes, static_cast<int>(label) + 1);
  }

  // Scales to 0..1 or -1..1, as the initial weights assume. Pixels from 0 to 16 become exact sixteenths.
  void scale() {
    float largest = 0;
    for (const float value : rows_.values) largest = std::max(largest, std::abs(value));
    if (largest == 0) return;
    for (float& value : rows_.values) value /= largest;
  }

  std::string file_;
  int line_ = 0;
  int label_column_ = 0;
  Diagnostics problems_;
  LabelledRows rows_;
};

}  // namespace

LabelledRows read_labelled_rows(const std::filesystem::path& path) {
  return RowsReader(path.string()).read(read_input_file(path));
}

int training_rows(const LabelledRows& rows) {
  return rows.rows() - rows.rows() / kTestEvery;
}

TrainTestSplit split_rows(const LabelledRows& rows) {
  TrainTestSplit split;
  for (LabelledRows* part : {&split.train, &split.test}) {
    part->columns = rows.columns;
    part->classes = rows.classes;
  }
  for (int row = 0; row < rows.rows(); ++row) {
    LabelledRows& part = row % kTestEvery == kTestEvery - 1 ? split.test : split.train;
    const auto first = rows.values.begin() + static_cast<std::ptrdiff_t>(row) * rows.columns;
    part.values.insert(part.values.end(), first, first + rows.columns);
    part.labels.push_back(rows.labels[static_cast<std::size_t>(row)]);
  }
  return split;
}

}  // namespace tandem
