// Reads what the programs of nccl-tests (and rccl-tests) print, as text or, with -J, as JSON, and what `tandem
// collectives` prints.
//
// In text, tables are found among other output (NCCL's log, the launcher's prefixes, several runs in one file). Broken
// lines of a table, tables that end before their last size, and figures that contradict each other are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/nccl_tests/collective_table.h"

namespace tandem {

// Returns every table of the file, without rows of 0 bytes. `stated` is what the caller knows and the file may not say:
// the operation and the number of devices. Throws InputError with the first problem of every table, at its line and
// column.
std::vector<CollectiveTable> read_nccl_tests(std::string_view text, const std::string& file,
                                             const CollectiveTable& stated = {});

}  // namespace tandem
