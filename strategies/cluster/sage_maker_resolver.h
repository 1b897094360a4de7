// tf.distribute.cluster_resolver.SageMakerClusterResolver: the cluster of a SageMaker training job, in which every host
// is a worker.
#pragma once

#include "strategies/cluster/config_resolver.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// Reads SM_HOSTS (a JSON list of host names) and SM_CURRENT_HOST at every call. Sorts the hosts by name; the cluster is
// empty when the current host is not among them. AssertionError when a variable is missing, which means that this is no
// SageMaker environment.
class SageMakerResolver final : public ConfigResolver {
 public:
  // `variables` must outlive the resolver.
  explicit SageMakerResolver(TaskQuery overrides = {}, const Environment& variables = process_environment(),
                             int port = 2223, std::string environment = "")
      : ConfigResolver(std::move(overrides), std::move(environment)), variables_(variables), port_(port) {}

 private:
  std::string config() const override;
  std::vector<std::string> hosts() const;

  const Environment& variables_;
  int port_;
};

}  // namespace tandem
