#include "strategies/cluster/resolvers.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/cluster/sage_maker_resolver.h"
#include "strategies/cluster/slurm_resolver.h"
#include "strategies/cluster/tf_config_resolver.h"

namespace tandem {

std::unique_ptr<ClusterResolver> make_cluster_resolver(std::string_view name, Environment& variables) {
  constexpr std::string_view kByName = "TFConfigClusterResolver, SlurmClusterResolver, SageMakerClusterResolver";
  if (name == "TFConfigClusterResolver") return std::make_unique<TfConfigResolver>(TaskQuery{}, variables);
  if (name == "SlurmClusterResolver") return std::make_unique<SlurmResolver>(SlurmOptions{}, variables);
  if (name == "SageMakerClusterResolver") return std::make_unique<SageMakerResolver>(TaskQuery{}, variables);
  if (name == "SimpleClusterResolver" || name == "UnionResolver") {
    throw ValueError(fmt::format("{} needs arguments: construct the class (by name: {})", name, kByName));
  }
  if (name == "GCEClusterResolver" || name == "KubernetesClusterResolver" || name == "TPUClusterResolver") {
    throw NotImplementedError(
        fmt::format("there is no {}, which would ask a cloud's services; there are {}, SimpleClusterResolver and "
                    "UnionResolver, and a program can derive its own from ClusterResolver",
                    name, kByName));
  }
  throw ValueError(fmt::format("unknown cluster resolver '{}' (known: {})", name, kByName));
}

}  // namespace tandem
