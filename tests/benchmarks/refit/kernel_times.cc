// Prints what the model predicts for each published time of a kernel: file, GPU, measured and predicted seconds.
#include <cstdio>
#include <map>
#include <string>

#include "tests/scenarios/kernel_times.h"

namespace {

template <typename Time>
void print_rows(const char* file, Time time) {
  std::map<std::string, tandem::KernelTimes> gpus;
  for (const tandem::KernelRow& row : tandem::kernel_rows(file)) {
    const auto times = gpus.try_emplace(row.gpu, tandem::kernel_machine(row.gpu)).first;
    std::printf("%s,%s,%.9g,%.9g\n", file, row.gpu.c_str(), row.measured_s, time(times->second, row));
  }
}

}  // namespace

int main() {
  print_rows("gemm.csv", [](const tandem::KernelTimes& times, const tandem::KernelRow& row) {
    return times.product_s(row.sizes, tandem::kernel_type(row.gpu));
  });
  print_rows("attention.csv", [](const tandem::KernelTimes& times, const tandem::KernelRow& row) {
    return times.attention_s(row.sizes);
  });
}
