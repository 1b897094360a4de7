// A model as the simulator and the real devices train it: layer by layer, as matrix products, element-wise work
// and parameters. Files: scenarios/models/*.yaml, docs/scenarios.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tandem {

// The work of one layer for one example, in elements; the scenario's dtype decides the bytes.
struct Layer {
  // output[rows, columns] = input[rows, depth] * weights[depth, columns], `count` times an example. Convolutions
  // are implicit GEMMs: rows = output height x width, columns = output channels, depth = input channels x kernel.
  struct Gemm {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t depth = 0;
    std::int64_t count = 1;
    std::int64_t input_elements = 0;  // read from memory for one product; less than rows x depth in convolutions
    bool batched = false;             // the right operand belongs to the example too, as in attention: no parameters
  };
  // How often element-wise and normalising work, which memory limits, reads or writes all `elements`.
  struct Elementwise {
    std::int64_t elements = 0;
    int forward_passes = 0;
    int backward_passes = 0;
  };

  std::string name;
  std::optional<Gemm> gemm;
  std::optional<Elementwise> elementwise;
  std::int64_t parameters = 0;

  std::int64_t forward_macs() const;     // of one example: multiply-accumulates, two flops each
  std::int64_t output_elements() const;  // of one example
};

struct Model {
  std::string name;
  std::string source;               // of the architecture
  std::string unit = "examples";    // what a batch counts: "examples", "sequences"
  std::int64_t input_elements = 0;  // of one example
  std::vector<Layer> layers;        // in forward order

  std::int64_t parameters() const;
  std::int64_t forward_macs() const;
  std::int64_t output_elements() const;
};

// Throws InputError with every problem of the file.
Model read_model(const std::filesystem::path& path);

// The models that come with Tandem, sorted: "bert_large", "resnet50", ...
std::vector<std::string> packaged_models();

}  // namespace tandem
