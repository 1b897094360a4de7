// A model as simulated and real devices train it: layer by layer, as matrix products, element-wise work and parameters.
// scenarios/models/*.yaml have the models, docs/scenarios.md describes such files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strategies/model/stack.h"

namespace tandem {

// The work of one layer for one example, in elements; the scenario's dtype decides the bytes.
struct Layer {
  // output[rows, columns] = input[rows, depth] * weights[depth, columns], `count` times for each example. Convolutions
  // are implicit GEMMs: rows = output height x width, columns = output channels, depth = input channels x kernel.
  struct Gemm {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t depth = 0;
    std::int64_t count = 1;
    std::int64_t input_elements = 0;  // read from memory for one product; less than rows x depth in convolutions
    bool batched = false;             // the right operand belongs to the example too, as in attention: no parameters
    std::int64_t sharing = 1;         // batched products that have one right operand: heads of one key and value
    std::int64_t experts = 1;         // matrices of weights, each for an equal part of the rows
    std::int64_t all_experts = 1;     // of the layer of which this is a device's part
    double attended = 1;              // of all pairs of a query and a key, the share that a causal mask leaves
    bool operator==(const Gemm&) const = default;
  };
  // A convolution with padding: an output side is the input side / stride, rounded up. The kernel has as many equal
  // sides as the input.
  struct Convolution {
    std::int64_t height = 0, width = 0;  // of the input
    std::int64_t in_channels = 0, out_channels = 0;
    std::int64_t kernel = 1;  // its side
    std::int64_t stride = 1;
    std::int64_t groups = 1;
    std::int64_t image_depth = 0;  // of an input with three sides; 0: it has two

    // Returns the product of its operands as matrices, those of all groups side by side.
    Gemm as_gemm() const;
    bool operator==(const Convolution&) const = default;
  };
  // Rows of a table, which the example chooses.
  struct Embedding {
    std::int64_t rows = 0;  // of one example
    std::int64_t columns = 0;
    std::int64_t entries = 0;  // rows of the table
    bool operator==(const Embedding&) const = default;
  };
  // Element-wise and normalising work that no stack changes, as the number of times that it reads or writes all
  // `elements`.
  struct Elementwise {
    std::int64_t elements = 0;
    double forward_passes = 0;
    double backward_passes = 0;
    bool operator==(const Elementwise&) const = default;
  };
  // What surrounds experts: rows are copied to each of the `used` experts that a router chooses for them, or become the
  // weighted sums of what these experts made of them. `elementwise` has the work.
  struct Routing {
    enum class Way : std::uint8_t { dispatch, combine };
    Way way = Way::dispatch;
    std::int64_t rows = 0;  // of one example
    std::int64_t columns = 0;
    std::int64_t used = 1;
    std::int64_t experts = 1;  // among which the router chooses
    bool operator==(const Routing&) const = default;
  };

  // How tensor-parallel devices divide a layer (Megatron-LM: Shoeybi and others, arXiv:1909.08053).
  enum class Split : std::uint8_t {
    none,     // every device computes all of it
    columns,  // of a dense layer's weights: part of the output; backward, the gradients of the input are summed
    rows,     // of a dense layer's weights: part of the input; forward, the outputs are summed
    count,    // some of the batched products
    entries,  // rows of an embedding's table; forward, the outputs are summed
  };
  // The role of one of the two batched products of attention: the first makes scores, which softmax follows; the second
  // reads the result as its left operand.
  enum class Scores : std::uint8_t { none, made, read };
  // How much of a layer of a repeated group is computed again before the backward pass, so that it need not be kept:
  // the `operations` after the product, whose results are not kept; all but the product, whose result alone is kept;
  // `everything`; or everything, where the output is kept all the same, because the next layer is not computed again.
  enum class Again : std::uint8_t { nothing, operations, all_but_product, everything, everything_but_output };
  // The copy of the outermost repeated group to which a layer belongs.
  struct Block {
    std::string group{};
    std::int64_t copy = 0;
    bool operator==(const Block&) const = default;
  };

  std::string name;
  std::optional<Gemm> gemm;  // of a convolution, too: as_gemm()
  std::optional<Convolution> convolution;
  std::optional<Elementwise> elementwise;
  std::optional<Embedding> embedding;
  std::optional<Routing> routing;
  std::vector<Pointwise> then;         // what is done to the output, in this order
  std::vector<std::int64_t> tensors;   // elements of each parameter that learns, in order of creation
  bool is_frozen = false;              // nothing learns but an adapter (strategies/model/lora.h)
  bool has_frozen_norm = false;        // batch norms apply constants: statistics that training does not change
  std::vector<std::int64_t> frozen{};  // elements of each parameter that does not learn
  std::int64_t adapter_rank = 0;       // 0: no adapter
  bool shares_adapter = false;         // the first product of its adapter is that of the layer before it
  bool shared_weights = false;         // a dense layer whose weights are another layer's parameters
  Split split = Split::none;
  bool is_whole = false;  // on every tensor-parallel device, whatever its split: experts (keep_experts_whole())
  Scores scores = Scores::none;
  std::optional<Block> block{};
  Again again = Again::nothing;  // as the training, not the model, says

  // Returns how tensor-parallel devices divide it.
  Split divided_by() const { return is_whole ? Split::none : split; }

  std::int64_t parameters() const;  // that learn
  std::int64_t frozen_parameters() const;
  bool has_weights() const;      // whether its product's right operand is among its parameters
  std::int64_t weights() const;  // of that operand; 0 if it is none of them
  // Whether its products are among those whose operands are quantised: dense layers of repeated groups, but for
  // routers, which a softmax follows.
  bool can_be_quantised() const;
  std::int64_t forward_macs() const;     // of one example: multiply-accumulates, two flops each
  std::int64_t output_elements() const;  // of one example
  bool operator==(const Layer&) const = default;
};

bool has_experts(const Layer& layer);
bool is_of_experts(const Layer& layer);  // also a part with one of them
// Returns whether an activation is among the operations that follow the layer.
bool has_activation(const Layer& layer);
// Returns whether a layer reads the same input as the one before it: neighbours that are split by columns.
bool shares_input(std::span<const Layer> layers, std::size_t index);

struct Model {
  std::string name;
  std::string source;               // of the architecture
  std::string unit = "examples";    // what a batch counts: "examples", "sequences"
  bool is_recurrent = false;        // whether its products wait for each other from token to token
  bool divides_unevenly = false;    // whether devices may have parts of its layers and batches that differ by one
  Stack stack{};                    // how frameworks usually execute it
  std::int64_t input_elements = 0;  // of one example
  std::vector<Layer> layers;        // in forward order

  std::int64_t parameters() const;  // that learn
  std::int64_t frozen_parameters() const;
  std::int64_t forward_macs() const;
  std::int64_t output_elements() const;
  bool depends_on_stack() const;  // whether operations follow its layers
  bool has_operation(Pointwise operation) const;
};

}  // namespace tandem
