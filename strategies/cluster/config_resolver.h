// The base of resolvers that learn the cluster from a TF_CONFIG document. Every call reads the document again:
//   {"cluster": ..., "task": {"type": ..., "index": ...}, "rpc_layer": ..., "session_master": ...}
#pragma once

#include <string>

#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

class ConfigResolver : public ClusterResolver {
 public:
  ClusterSpec cluster_spec() const override;
  // Constructor arguments and setters take precedence over the document. ValueError for an index that is no number.
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::optional<std::string> rpc_layer() const override;

 protected:
  using ClusterResolver::ClusterResolver;
  // Returns the document as JSON text.
  virtual std::string config() const = 0;

  // Returns the session master if there is one; "" for a cluster without jobs or with a single task; else the address
  // of the task that is asked for, or of this task.
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery& query) const override;
};

}  // namespace tandem
