// Cluster resolvers by name, for programs that take the resolver from a setting.
#pragma once

#include <memory>
#include <string_view>

#include "strategies/cluster/cluster_resolver.h"
#include "strategies/cluster/environment.h"

namespace tandem {

// Makes the resolver of this TensorFlow name: "TFConfigClusterResolver", "SlurmClusterResolver" or
// "SageMakerClusterResolver", which read the environment. `variables` must outlive the result.
//
// NotImplementedError, naming the resolvers that exist, for "GCEClusterResolver", "KubernetesClusterResolver" and
// "TPUClusterResolver", which Tandem does not have. ValueError for resolvers that need more than the environment
// (SimpleClusterResolver, UnionResolver) and for any other name.
std::unique_ptr<ClusterResolver> make_cluster_resolver(std::string_view name,
                                                       Environment& variables = process_environment());

}  // namespace tandem
