// tf.distribute.cluster_resolver.UnionResolver: the clusters of several resolvers as one.
#pragma once

#include <memory>

#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

// Takes task, rpc layer, environment and accelerators from the first resolver. Values that are set here take
// precedence, but as in TensorFlow an empty text or a task id of 0 counts as not set.
class UnionResolver final : public ClusterResolver {
 public:
  // ValueError without a resolver, TypeError for a null one.
  explicit UnionResolver(std::vector<std::shared_ptr<const ClusterResolver>> resolvers, TaskQuery overrides = {});

  // Joins the lists of a job in order. If one of them is a map, all tasks keep their indices, those of a list counting
  // from 0; KeyError when two clusters have the same index.
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
