// How far predicted training steps on one GPU have been from published ones, for each kind of GPU.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tandem::sim {

// Errors over groups of published steps of one table, model, GPU and precision, in percent. The figures are computed
// from the published rows by tests/scenarios/training_rows_test.cc, which compares them with this table.
struct KernelErrors {
  std::string_view gpu;  // DeviceModel::name
  int steps = 0;         // groups
  int median = 0;
  int nine_in_ten = 0;  // fewer than ten groups: the largest
};
std::span<const KernelErrors> kernel_errors();

// Returns what is known of predictions for a GPU of that name, as the end of a sentence about its kernel times.
std::string kernel_errors_text(std::string_view gpu);

}  // namespace tandem::sim
