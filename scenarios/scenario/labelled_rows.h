// Classification data from a CSV file: rows of numbers, each ending with its class, split into training and test rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tandem {

struct LabelledRows {
  int columns = 0;            // values in a row
  int classes = 0;            // labels are 0 ... classes - 1
  std::vector<float> values;  // row by row, divided by the largest absolute value of the file
  std::vector<std::int32_t> labels;

  int rows() const { return static_cast<int>(labels.size()); }
};

// Throws InputError with the line and column of every field that is not a number, and of rows of another length.
LabelledRows read_labelled_rows(const std::filesystem::path& path);

// Every fifth row, beginning with the fifth, is for testing. The choice is fixed, so that runs can be compared.
struct TrainTestSplit {
  LabelledRows train;
  LabelledRows test;
};
TrainTestSplit split_rows(const LabelledRows& rows);
int training_rows(const LabelledRows& rows);  // how many are for training

}  // namespace tandem
