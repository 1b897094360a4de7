// What attention does beside its products where devices that divide tokens pass keys on, or exchange heads.
#include "scenarios/workloads/scratch_stage.h"
#include "strategies/model/lora.h"

namespace tandem {
namespace {

constexpr double kSumPasses = 3;    // reads both, writes one
constexpr double kOrderPasses = 4;  // a kernel before an exchange and one after it, each of which reads and writes

LayerKernel moving(const std::string& name, double elements, double passes, int launches, const LayerKernels& kernels,
                   DType storage) {
  return {.name = name,
          .bytes = passes * elements * static_cast<double>(size_of(storage)),
          .kernels = launches,
          .has_wide_loads = true,
          .issue_s = launches * kernels.issue_s()};
}

}  // namespace

// The results of later rounds, and gradients of queries, are added to those of earlier ones, and gradients of keys to
// what came with them, as Transformer Engine's context_parallel.py does (flash_attn_fwd_out_correction(), `dq`, `dkv`).
// Scores of a round are apart from those of others.
void ScratchStage::add_rounds(std::size_t layer, const LayerKernels& kernels, LayerKernelsByWork& all) const {
  const Layer& part = layers_[layer];
  const auto add = [&](Work work, std::int64_t elements, const char* what) {
    all[static_cast<std::size_t>(work)].push_back(moving(part.name + what,
                                                         static_cast<double>(kernels.batch() * elements), kSumPasses, 1,
                                                         kernels, settings_.storage()));
  };
  const std::int64_t rows = part.gemm->count * part.gemm->rows;
  if (part.scores != Layer::Scores::made) add(Work::product_sum, rows * part.gemm->columns, " sum");
  if (!learns_until(settings_.model.layers, part_.first + layer)) return;
  add(Work::weight_gradient_sum, key_elements(part) / part_.division.context, " weight gradient sum");
  if (part.scores != Layer::Scores::read) {
    add(Work::input_gradient_sum, rows * part.gemm->depth, " input gradient sum");
  }
}

// Before an exchange, heads are put in the order of the devices that get them; after it, in the order of their tokens,
// and the other way round (flash_attn_a2a_communicate() there).
void ScratchStage::add_orders(std::size_t layer, const LayerKernels& kernels, const LayerExchanges& exchanges,
                              LayerKernelsByWork& all) const {
  const Layer& part = layers_[layer];
  const auto add = [&](Work work, std::int64_t elements, const char* what) {
    if (elements == 0) return;
    std::vector<LayerKernel>& some = all[static_cast<std::size_t>(work)];
    some.insert(some.begin(),
                moving(part.name + what, static_cast<double>(elements), kOrderPasses, 2, kernels, settings_.storage()));
  };
  add(Work::product, exchanges.queries, " queries in order");
  add(Work::product, exchanges.keys, " keys in order");
  add(Work::results_of_tokens, exchanges.results, " results in order");
  if (!learns_until(settings_.model.layers, part_.first + layer)) return;
  add(Work::operations_gradient, exchanges.results, " result gradients in order");
  add(Work::gradients_of_tokens, exchanges.queries, " query gradients in order");
  add(Work::gradients_of_tokens, exchanges.keys, " key gradients in order");
}

}  // namespace tandem
