#include "cli/collective_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/nccl_tests/collective_table.h"
#include "scenarios/collectives/sweep_sizes.h"
#include "topologies/base/error.h"

namespace tandem {

CLI::Validator sweep_size() {
  return {[](std::string& text) {
            const auto bytes = parse_sweep_size(text);
            if (!bytes) return fmt::format("expected a size such as 8, 64K or 128M, found '{}'", text);
            text = fmt::to_string(*bytes);
            return std::string();
          },
          "SIZE"};
}

CLI::Validator collective_name() {
  return {[](std::string& name) {
            const std::string operation = operation_of_test(name);
            if (!operation.empty() && kind_of_operation(operation)) {
              name = operation;
              return std::string();
            }
            const std::string near = nearest_name(name, known_operations());
            return fmt::format("unknown collective '{}' (one of {}){}", name, fmt::join(known_operations(), ", "),
                               near.empty() ? "" : "; did you mean '" + near + "'?");
          },
          "NAME"};
}

CLI::Validator nccl_dtype() {
  return {[](const std::string& word) {
            return dtype_of_nccl(word)
                       ? ""
                       : fmt::format("'{}' is no element type of nccl-tests, such as float or half", word);
          },
          "TYPE"};
}

}  // namespace tandem
