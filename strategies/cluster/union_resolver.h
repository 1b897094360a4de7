// Several resolvers' clusters as one.
#pragma once

#include <memory>

#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

// Task, rpc layer, environment and accelerators are the first resolver's. What is set here comes first, but an empty
// text or a task id of 0 counts as not set.
class UnionResolver final : public ClusterResolver {
 public:
  // ValueError without a resolver, TypeError for a null one.
  explicit UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers, TaskQuery overrides = {});

  // Lists of a job are joined in order. As soon as one is a map, tasks keep their indices (those of a list count from
  // 0); KeyError when two clusters have the same one.
  ClusterSpec cluster_spec() const override;
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::optional<std::string> rpc_layer() const override;
  std::string environment() const override { return first().environment(); }

 private:
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery& query) const override;
  const ClusterResolver& first() const { return *resolvers_.front(); }

  std::vector<std::shared_ptr<const ClusterResolver>> resolvers_;
};

}  // namespace tandem
