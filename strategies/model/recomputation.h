// What is computed again before its backward pass, so that the forward pass need not keep it.
//
// Either whole blocks (Layer::block) keep their input alone, or single layers of each block do something else, as
// Layer::again says. Megatron-LM calls these granularities `full` and `selective`; torchtitan has `selective` with a
// number for every n-th block, and with `op` for recompute_operations().
//
// Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/model/model.h"

namespace tandem {

// Which blocks of a stage are computed again as a whole.
struct RecomputedBlocks {
  bool any = false;
  int first = 0;     // of the blocks of a stage, so many; 0: all
  int every = 1;     // of these, every n-th, beginning with the first
  int together = 1;  // so many neighbours keep one input, and are computed again together

  bool operator==(const RecomputedBlocks&) const = default;
};

// Work that is done again: of a layer, its product and what follows it, or only the latter.
struct Again {
  std::size_t layer = 0;
  bool with_product = true;
};

// What consecutive layers of a stage compute again.
class Recomputation {
 public:
  Recomputation(std::span<const Layer> layers, const RecomputedBlocks& blocks);

  // What is done again before the backward pass of a layer, in this order.
  const std::vector<Again>& before(std::size_t layer) const { return before_[layer]; }
  // How much of a layer the forward pass keeps; blocks count as layers that do everything again.
  Layer::Again again(std::size_t layer) const { return again_[layer]; }
  // The first of the consecutive layers that are computed again as a whole, together with this one.
  std::size_t first_of(std::size_t layer) const { return first_[layer]; }
  // Whether the next layer finds the output that it reads.
  bool keeps_output(std::size_t layer) const {
    return again_[layer] == Layer::Again::nothing || again_[layer] == Layer::Again::everything_but_output;
  }

 private:
  void add_blocks(std::span<const Layer> layers, const RecomputedBlocks& blocks);
  void add_layers(std::span<const Layer> layers);

  std::vector<std::vector<Again>> before_;
  std::vector<Layer::Again> again_;
  std::vector<std::size_t> first_;
};

// The parts of a block that Megatron-LM's --recompute-modules names, and `act`, the activation of a layer without
// experts.
std::span<const std::string_view> recomputed_modules();
// Marks the layers of a module in every block. Returns why there are none, for messages, or nothing.
std::optional<std::string> recompute_module(std::string_view module, Model& model);
// Marks the layers with this name in every block. Returns false if there are none.
bool recompute_layer(std::string_view name, Model& model);
// Called once all are marked: neighbours in a block that are computed again as a whole become one part, of which only
// the last one's output is kept.
void join_recomputed_layers(Model& model);
// Marks layers as torchtitan does: the results of every other product of weights in a block and of attention are kept,
// and all else is computed again.
void recompute_operations(Model& model);

// Whether some layer says that it is computed again, apart from whole blocks.
bool has_recomputed_layers(const Model& model);

}  // namespace tandem
