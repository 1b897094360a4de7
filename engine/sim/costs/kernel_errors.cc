#include "engine/sim/costs/kernel_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/sim/costs/kernel_constants.h"

namespace tandem::sim {
namespace {

constexpr KernelErrors kErrors[] = {
    {"NVIDIA A10", 6, 17, 37},
    {"NVIDIA A100 PCIe 40 GB", 6, 13, 26},
    {"NVIDIA A100 PCIe 80 GB", 6, 6, 14},
    {"NVIDIA A100 SXM4 40 GB", 2, 0, 7},
    {"NVIDIA A100 SXM4 80 GB", 10, 5, 13},
    {"NVIDIA B200 SXM6 180 GB", 6, 7, 15},
    {"NVIDIA GH200 96 GB", 6, 19, 33},
    {"NVIDIA GeForce RTX 3090", 6, 7, 25},
    {"NVIDIA GeForce RTX 4090", 6, 11, 25},
    {"NVIDIA H100 PCIe 80 GB", 12, 10, 14},
    {"NVIDIA H100 SXM5 80 GB", 12, 5, 8},
    {"NVIDIA H200 SXM5 141 GB", 6, 3, 19},
    {"NVIDIA Quadro RTX 8000", 6, 12, 18},
    {"NVIDIA RTX 6000 Ada", 6, 17, 41},
    {"NVIDIA RTX A6000", 6, 4, 18},
    {"NVIDIA Tesla V100 SXM2 32 GB", 30, 6, 17},
    {"NVIDIA Tesla V100 SXM3 32 GB", 2, 2, 6},
};

constexpr int kEnoughForShares = 10;

}  // namespace

std::span<const KernelErrors> kernel_errors() {
  return kErrors;
}

std::string kernel_errors_text(std::string_view gpu) {
  const auto known = std::find_if(std::begin(kErrors), std::end(kErrors),
                                  [gpu](const KernelErrors& errors) { return errors.gpu == gpu; });
  if (known == std::end(kErrors)) {
    return fmt::format(
        "no published step on one such GPU was compared; of {} of convolutions and BERT on V100, A100, H100 and H200 "
        "half "
        "are within {} % and nine in ten within {} %",
        kernel_constants::kPublishedSteps, kernel_constants::kMedianErrorPercent, kernel_constants::kNineInTenPercent);
  }
  if (known->steps < kEnoughForShares) {
    return fmt::format(
        "of {} published steps of convolutions and BERT on one such GPU half are within {} % and all within {} %",
        known->steps, known->median, known->nine_in_ten);
  }
  return fmt::format(
      "of {} published steps of convolutions and BERT on one such GPU half are within {} % and nine in ten within {} %",
      known->steps, known->median, known->nine_in_ten);
}

}  // namespace tandem::sim
