#include "strategies/cluster/simple_resolver.h"

namespace tandem {

SimpleResolver::SimpleResolver(ClusterSpec cluster, SimpleResolverOptions options)
    : ClusterResolver(std::move(options.task), std::move(options.environment)),
      cluster_(std::move(cluster)),
      master_(std::move(options.master)),
      accelerators_(std::move(options.num_accelerators)) {}

std::string SimpleResolver::find_master(const TaskQuery& query) const {
  const bool names_a_task = query.task_type && query.task_id;
  const std::string address = names_a_task ? cluster_.task_address(*query.task_type, *query.task_id) : master_;
  const std::string asked = query.rpc_layer.value_or("");
  return format_master_url(address, asked.empty() ? rpc_layer().value_or("") : asked);
}

}  // namespace tandem
