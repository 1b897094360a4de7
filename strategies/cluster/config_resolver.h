// What the resolvers share that describe the cluster by a TF_CONFIG document: {"cluster": ..., "task": {"type": ...,
// "index": ...}, "rpc_layer": ..., "session_master": ...}. The document is read anew at every call.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "strategies/cluster/cluster_resolver.h"

namespace tandem {

class ConfigResolver : public ClusterResolver {
 public:
  ClusterSpec cluster_spec() const override;
  // Constructor arguments and setters come first, then the document. A type is taken as text, an index as a number
  // (ValueError where it is none).
  std::optional<std::string> task_type() const override;
  std::optional<int> task_id() const override;
  std::optional<std::string> rpc_layer() const override;

 protected:
  using ClusterResolver::ClusterResolver;
  virtual nlohmann::json config() const = 0;  // an object

  // The session master when one is given; "" when the cluster has no job, or one job of one task; else the address of
  // the task that is asked for, or of this task.
  std::string find_master(const TaskQuery& query) const override;
  AcceleratorCounts count_accelerators(const TaskQuery& query) const override;
};

}  // namespace tandem
