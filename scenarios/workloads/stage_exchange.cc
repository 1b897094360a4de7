#include "scenarios/workloads/stage_exchange.h"

namespace tandem {

void StageExchange::gather(GroupCollectives& group, std::int64_t elements, Stream& stream) const {
  if (elements == 0) return;
  group.all_gather(memory_.whole.flat_slice(0, elements), memory_.rows.flat_slice(0, elements / group.size()), stream);
}

void StageExchange::scatter(GroupCollectives& group, std::int64_t elements, Stream& stream) const {
  if (elements == 0) return;
  group.reduce_scatter(memory_.rows.flat_slice(0, elements / group.size()), memory_.whole.flat_slice(0, elements),
                       stream);
}

void StageExchange::sum(std::int64_t elements, Stream& stream) const {
  if (elements == 0) return;
  if (divides_rows_) return scatter(*groups_.tensor, elements, stream);
  groups_.tensor->all_reduce(memory_.whole.flat_slice(0, elements), stream);
}

void StageExchange::gather(std::int64_t elements, Stream& stream) const {
  gather(*groups_.tensor, elements, stream);
}

void StageExchange::sum_of_loss(std::int64_t rows, Stream& stream) const {
  if (rows > 0) groups_.tensor->all_reduce(memory_.row_sums.flat_slice(0, rows), stream);
}

void StageExchange::gather_keys(std::int64_t elements, Stream& stream) const {
  if (elements > 0) gather(*groups_.context, elements, stream);
}

void StageExchange::scatter_keys(std::int64_t elements, Stream& stream) const {
  if (elements > 0) scatter(*groups_.context, elements, stream);
}

void StageExchange::move_tokens(std::int64_t elements, Stream& stream) const {
  if (elements == 0) return;
  groups_.experts->all_to_all(memory_.whole.flat_slice(0, elements), memory_.rows.flat_slice(0, elements), stream);
}

}  // namespace tandem
