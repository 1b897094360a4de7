#include "strategies/parallel/stages/stage_exchange.h"

#include "topologies/base/error.h"

namespace tandem {

void issue(Exchange exchange, const MeshGroups& groups, GroupCollectives* tensor, bool divides_rows,
           const Exchanged& tensors, Stream& stream) {
  const auto& [whole, part] = tensors;
  switch (exchange) {
    case Exchange::input:
    case Exchange::input_again:
    case Exchange::output_gradient:
      return tensor->all_gather(whole, part, stream);
    case Exchange::output:
    case Exchange::input_gradient:
      return divides_rows ? tensor->reduce_scatter(part, whole, stream) : tensor->all_reduce(whole, stream);
    case Exchange::tokens_to_experts:
    case Exchange::tokens_from_experts:
    case Exchange::gradients_to_experts:
    case Exchange::gradients_from_experts:
      return groups.experts->all_to_all(whole, part, stream);
    case Exchange::keys:
    case Exchange::keys_again:
      return groups.context->all_gather(whole, part, stream);
    case Exchange::key_gradients:
      return groups.context->reduce_scatter(part, whole, stream);
    case Exchange::queries_to_heads:
    case Exchange::keys_to_heads:
    case Exchange::results_to_tokens:
    case Exchange::result_gradients_to_heads:
    case Exchange::query_gradients_to_tokens:
    case Exchange::key_gradients_to_tokens:
      return groups.context->all_to_all(whole, part, stream);
    case Exchange::piece:
    case Exchange::piece_and_sums:
      TANDEM_UNREACHABLE("pieces go from device to device");
    case Exchange::loss_maxima:
      return tensor->all_reduce(whole, stream, Reduction::maximum);
    case Exchange::loss_sums:
    case Exchange::loss_targets:
      return tensor->all_reduce(whole, stream);
  }
  TANDEM_UNREACHABLE("an exchange");
}

}  // namespace tandem
