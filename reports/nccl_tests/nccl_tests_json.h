// Reads the JSON form of nccl-tests (-J), versions 1 to 3. For reports/nccl_tests/nccl_tests_reader.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/nccl_tests/collective_table.h"

namespace tandem {

// Throws InputError, with line and column, for a text that is not JSON, such as one that is cut off.
void check_json(std::string_view text, const std::string& file);

namespace nccl_tests {

std::vector<CollectiveTable> read_json(std::string_view text, const std::string& file, const CollectiveTable& stated);

}  // namespace nccl_tests
}  // namespace tandem
