// tf.distribute.cluster_resolver.TFConfigClusterResolver: the cluster that the environment variable TF_CONFIG describes
// in JSON.
#pragma once

#include "strategies/cluster/config_resolver.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// Without the variable the cluster is empty. ValueError for text that is no JSON, TypeError for JSON of another shape.
class TfConfigResolver final : public ConfigResolver {
 public:
  // `variables` must outlive the resolver.
  explicit TfConfigResolver(TaskQuery overrides = {}, const Environment& variables = process_environment(),
                            std::string environment = "")
      : ConfigResolver(std::move(overrides), std::move(environment)), variables_(variables) {}

 private:
  std::string config() const override { return variables_.get("TF_CONFIG").value_or("{}"); }

  const Environment& variables_;
};

}  // namespace tandem
