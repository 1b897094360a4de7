#include "strategies/model/lora.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tandem {
namespace {

std::string_view last_name(const Layer& layer) {
  const std::string_view name = layer.name;
  return name.substr(name.rfind('.') + 1);
}

bool may_have_adapter(const Layer& layer) {
  return layer.gemm && !layer.gemm->batched && !layer.convolution && !has_experts(layer) &&
         (layer.has_weights() || layer.shared_weights);
}

Layer product_of(const Layer& layer, const char* more, std::int64_t depth, std::int64_t columns) {
  Layer made;
  made.name = layer.name + more;
  made.block = layer.block;
  made.gemm = Layer::Gemm{.rows = layer.gemm->rows,
                          .columns = columns,
                          .depth = depth,
                          .count = layer.gemm->count,
                          .input_elements = layer.gemm->rows * depth};
  made.tensors = {depth * columns};
  return made;
}

}  // namespace

void freeze(Layer& layer) {
  layer.is_frozen = true;
  layer.frozen.insert(layer.frozen.begin(), layer.tensors.begin(), layer.tensors.end());
  layer.tensors.clear();
}

void freeze(Model& model) {
  for (Layer& layer : model.layers) freeze(layer);
}

namespace {

std::optional<std::string> add_adapter(std::int64_t rank, bool shares, Layer& layer) {
  if (!may_have_adapter(layer)) {
    return fmt::format("layer '{}' is {}; adapters are beside dense layers", layer.name,
                       has_experts(layer) ? "one of experts" : "not dense");
  }
  const std::int64_t most = std::min(layer.gemm->depth, layer.gemm->columns);
  if (rank > most) {
    return fmt::format("rank {} is more than a side of the weights of layer '{}': {}", rank, layer.name, most);
  }
  layer.adapter_rank = rank;
  layer.shares_adapter = shares;
  layer.tensors = adapter_tensors(layer);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> add_adapters(std::span<const std::string> names, std::int64_t rank, Model& model) {
  bool found = false;
  std::vector<Layer>& layers = model.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (last_name(layers[i]) != names.front()) continue;
    found = true;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const bool is_neighbour =
          i + k < layers.size() && last_name(layers[i + k]) == names[k] && (k == 0 || shares_input(layers, i + k));
      if (!is_neighbour) {
        return fmt::format("'{}' does not follow '{}' as a layer split by columns that reads the same input", names[k],
                           names[k - 1]);
      }
      if (auto problem = add_adapter(rank, k > 0, layers[i + k])) return problem;
    }
  }
  if (found) return std::nullopt;
  std::set<std::string_view> known;
  for (const Layer& layer : layers) {
    if (may_have_adapter(layer)) known.insert(last_name(layer));
  }
  return fmt::format("model '{}' has no layer '{}'; dense ones are {}", model.name, names.front(),
                     fmt::join(known, ", "));
}

Layer down_adapter(const Layer& layer) {
  return product_of(layer, " down", layer.gemm->depth, layer.adapter_rank);
}

Layer up_adapter(const Layer& layer, int row_parts) {
  Layer up = product_of(layer, " up", layer.adapter_rank, layer.gemm->columns);
  up.gemm->rows /= row_parts;
  up.gemm->input_elements /= row_parts;
  return up;
}

std::vector<std::int64_t> adapter_tensors(const Layer& layer) {
  const std::int64_t down = layer.gemm->depth * layer.adapter_rank, up = layer.adapter_rank * layer.gemm->columns;
  if (layer.shares_adapter) return {up};
  return layer.split == Layer::Split::columns ? std::vector{up, down} : std::vector{down, up};
}

std::int64_t summed_adapter_parameters(const Layer& part, bool divides_rows) {
  if (part.adapter_rank == 0 || part.shares_adapter) return 0;
  if (part.divided_by() == Layer::Split::none) return divides_rows ? part.parameters() : 0;
  return part.tensors.back();
}

double training_macs(const Model& model) {
  constexpr double kPasses = 3;
  double macs = kPasses * static_cast<double>(model.forward_macs());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const bool has_backward = learns_until(model.layers, i), is_weighted = layer.gemm && !layer.gemm->batched;
    const double left_out = !has_backward ? kPasses - 1 : layer.is_frozen && is_weighted ? 1 : 0;
    macs -= left_out * static_cast<double>(layer.forward_macs());
    if (layer.adapter_rank == 0) continue;
    const std::int64_t down = layer.shares_adapter ? 0 : down_adapter(layer).forward_macs();
    macs += kPasses * static_cast<double>(down + up_adapter(layer).forward_macs());
  }
  return macs;
}

bool learns_until(std::span<const Layer> layers, std::size_t index) {
  return std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index) + 1,
                     [](const Layer& layer) { return !layer.is_frozen || layer.parameters() > 0; });
}

}  // namespace tandem
