#include "cli/base/unused_flags.h"

#include <fmt/format.h>

#include "engine/engine_info.h"

namespace tandem {

void find_unused_flags(const GivenFlags& given, const std::map<std::string, std::string>& nccl,
                       const CollectiveJob& job, const CollectiveSweep& sweep, const CollectiveResult& result,
                       UnusedKeys& unused) {
  const auto add = [&](const char* flag, bool has_effect, const std::string& why) {
    if (given.contains(flag) && !has_effect) unused.add(flag, why);
  };
  const bool is_model = engine_info(job.engine).needs_topology;
  const bool has_values = !result.table.rows.empty() && result.table.rows.front().wrong.has_value();
  add("--op", is_reducing(sweep.kind), fmt::format("{} reduces nothing", result.table.operation));
  add("--root", has_root(sweep.kind), fmt::format("{} has no root", result.table.operation));
  add("--stepbytes", !given.contains("--stepfactor"), "--stepfactor takes its place");
  add("--check", has_values || (!is_model && !sweep.checks_values), "tensors of a model hold no values");
  add("--topology", is_model, fmt::format("engine '{}' is this machine", job.engine));
  add("--collectives", result.consulted.contains("collectives"), "no collective of this run depends on it");
  find_unused_variables(
      nccl, result.consulted, [](const std::string& variable) { return "--nccl " + variable; }, unused);
  if (is_model) find_unused_keys(*job.topology, result.consulted, unused);
}

}  // namespace tandem
