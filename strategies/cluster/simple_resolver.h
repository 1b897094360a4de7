// tf.distribute.cluster_resolver.SimpleClusterResolver: a cluster that the program knows from the start.
#pragma once

#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

struct SimpleResolverOptions {
  std::string master{};  // what master() returns when no task is asked for
  TaskQuery task{};
  std::string environment{};
  AcceleratorCounts num_accelerators{};  // the same for every task
};

class SimpleResolver final : public ClusterResolver {
 public:
  explicit SimpleResolver(ClusterSpec cluster, SimpleResolverOptions options = {});
  ClusterSpec cluster_spec() const override { return cluster_; }

 private:
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery&) const override { return accelerators_; }

  ClusterSpec cluster_;
  std::string master_;
  AcceleratorCounts accelerators_;
};

}  // namespace tandem
