// The rows of IndexedSlices as the host knows them, for updates of single rows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/worker.h"
#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {

using RowNumbers = std::vector<std::int64_t>;

// Reads the slices' indices, which blocks the caller; without values, returns as many different rows as the variable
// has, over and over. InvalidArgumentError, naming the variable, for a row that it does not have.
RowNumbers rows_of(Worker& worker, const IndexedSlices& slices, const Variable& variable);
// The same numbers, each once: in their order where none is there twice, otherwise sorted.
RowNumbers distinct(const RowNumbers& rows);
// Returns slices of the rows `distinct_rows`, where rows with the same number among `rows` are added up.
IndexedSlices with_distinct_rows(Worker& worker, const IndexedSlices& slices, const RowNumbers& rows,
                                 const RowNumbers& distinct_rows);
// Copies these rows of a tensor, in one op.
Tensor gathered(const Tensor& tensor, const RowNumbers& rows);
// Returns the slices of the rows from `first` of a shard of this shape, counted from its first row. RuntimeError where
// the engine carries no values.
IndexedSlices rows_between(Worker& worker, const IndexedSlices& slices, std::int64_t first, const Shape& shard);

}  // namespace tandem
