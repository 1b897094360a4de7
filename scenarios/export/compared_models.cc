#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "scenarios/export/compared_jobs.h"

namespace tandem {
namespace {

constexpr const char* kModel = "workload.model";

// In the order of Pointwise.
constexpr std::array<std::string_view, 15> kOperations{"bias",      "batch_norm",    "relu",     "residual", "gelu",
                                                       "dropout",   "layer_norm",    "scale",    "mask",     "softmax",
                                                       "transpose", "cross_entropy", "rms_norm", "gate",     "rotary"};

// Consecutive layers that are one product.
struct Product {
  std::vector<std::string> names{};
  Layer layer{};  // the first of them, with the columns of all
  std::vector<Pointwise> then{};
  Layer::Again again = Layer::Again::nothing;
  std::int64_t parameters = 0;

  std::string name() const { return fmt::format("{}", fmt::join(names, ", ")); }
  std::string operations() const {
    if (then.empty()) return "nothing";
    std::vector<std::string_view> words;
    for (const Pointwise one : then) words.push_back(kOperations.at(static_cast<std::size_t>(one)));
    return fmt::format("{}", fmt::join(words, ", "));
  }
  bool ends_in_loss() const { return std::ranges::count(then, Pointwise::cross_entropy) > 0; }
  std::string text() const {
    if (layer.embedding)
      return fmt::format("{} of {} entries x {}", name(), layer.embedding->entries, layer.embedding->columns);
    if (!layer.gemm) return name();
    const std::string experts = layer.gemm->experts > 1 ? fmt::format(", {} experts", layer.gemm->experts) : "";
    return fmt::format("{} ({} x {} -> {}{})", name(), layer.gemm->rows, layer.gemm->depth, layer.gemm->columns,
                       experts);
  }
};

std::string name_in_its_block(const Layer& layer) {
  return layer.name.substr(layer.name.rfind('.') + 1);
}

bool joins(const Product& before, const Layer& next) {
  const Layer& last = before.layer;
  const bool are_dense = last.gemm && next.gemm && !last.gemm->batched && !next.gemm->batched && !last.convolution;
  return are_dense && last.block && last.block == next.block && last.split == Layer::Split::columns &&
         next.split == Layer::Split::columns && last.gemm->depth == next.gemm->depth &&
         last.gemm->rows == next.gemm->rows && last.gemm->experts == next.gemm->experts;
}

std::vector<Product> products_of(const Model& model) {
  std::vector<Product> all;
  for (const Layer& layer : model.layers) {
    if (all.empty() || !joins(all.back(), layer)) {
      all.emplace_back().layer = layer;
    } else {
      all.back().layer.gemm->columns += layer.gemm->columns;
      all.back().layer.gemm->input_elements = layer.gemm->input_elements;
    }
    Product& product = all.back();
    product.names.push_back(name_in_its_block(layer));
    for (const Pointwise one : layer.then) {
      // One kernel for all of them.
      if (std::ranges::count(product.then, one) == 0 || product.names.size() == 1) product.then.push_back(one);
    }
    product.again = std::max(product.again, layer.again);
    product.parameters += layer.parameters();
  }
  return all;
}

std::int64_t place_of_block(const Layer& layer) {
  return layer.block ? layer.block->copy : -1;
}

// Whether both are the same work with the same parameters, apart from operations on the output.
bool are_same(const Product& a, const Product& b) {
  return place_of_block(a.layer) == place_of_block(b.layer) && a.layer.gemm == b.layer.gemm &&
         a.layer.convolution == b.layer.convolution && a.layer.elementwise == b.layer.elementwise &&
         a.layer.embedding == b.layer.embedding && a.layer.routing == b.layer.routing &&
         a.layer.split == b.layer.split && a.layer.shared_weights == b.layer.shared_weights &&
         a.layer.scores == b.layer.scores && a.layer.is_frozen == b.layer.is_frozen &&
         a.layer.has_frozen_norm == b.layer.has_frozen_norm && a.layer.adapter_rank == b.layer.adapter_rank;
}

// Fills up a vocabulary of which `tensor` devices have equal parts in `read`, and returns with how many entries.
std::int64_t fill_up(Product& given, const Product& read, std::int64_t tensor) {
  std::int64_t *mine = nullptr, its = 0;
  if (given.layer.embedding && read.layer.embedding) {
    mine = &given.layer.embedding->entries;
    its = read.layer.embedding->entries;
  } else if (given.ends_in_loss() && read.ends_in_loss() && given.layer.gemm && read.layer.gemm) {
    mine = &given.layer.gemm->columns;
    its = read.layer.gemm->columns;
  }
  if (mine == nullptr || its <= *mine || its - *mine >= tensor) return 0;
  const std::int64_t more = its - *mine;
  *mine = its;
  return more;
}

class ModelComparison {
 public:
  ModelComparison(std::int64_t tensor, std::vector<JobDifference>& all) : tensor_(tensor), all_(all) {}

  void compare(const std::vector<Product>& given, const std::vector<Product>& read) {
    for (std::size_t i = 0; i < std::max(given.size(), read.size()); ++i) {
      if (i >= given.size()) return add(kModel, "no layer", read[i].text(), true);
      if (i >= read.size()) return add(kModel, given[i].text(), "no layer", true);
      if (!compare(given[i], read[i])) return;
    }
  }

 private:
  void add(const char* key, const std::string& given, const std::string& read, bool is_layout) {
    if (said_.insert(given + read).second) all_.push_back({key, given, read, is_layout});
  }

  bool compare(Product given, const Product& read) {
    if (const std::int64_t more = fill_up(given, read, tensor_); more > 0) {
      add(kModel, "as many words as it has", fmt::format("filled up with {} for equal parts on all devices", more),
          false);
    } else if (given.parameters != read.parameters || given.names.size() != read.names.size() ||
               given.then != read.then) {
      const bool have_others = given.parameters != read.parameters && given.operations() == read.operations();
      const auto shown = [have_others](const Product& product) {
        const std::string parameters = have_others ? fmt::format(", {} parameters", product.parameters) : "";
        return fmt::format("{}, then {}{}", product.name(), product.operations(), parameters);
      };
      add(kModel, shown(given), shown(read), false);
    }
    if (given.again != read.again && !has_other_parts_) {
      has_other_parts_ = true;
      add("workload.activation_checkpointing", "what is computed again of " + given.name(), "other parts of it", true);
    }
    if (are_same(given, read)) return true;
    add(kModel, given.text(), read.text(), true);
    return false;
  }

  const std::int64_t tensor_;
  std::vector<JobDifference>& all_;
  std::set<std::string> said_{};
  bool has_other_parts_ = false;
};

}  // namespace

void add_model_differences(const Model& given, const Model& read, std::int64_t tensor,
                           std::vector<JobDifference>& all) {
  if (given.layers == read.layers) return;
  ModelComparison(tensor, all).compare(products_of(given), products_of(read));
}

}  // namespace tandem
