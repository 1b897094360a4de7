// A training program as people write them for TensorFlow: TF_CONFIG tells each process which task of which cluster it
// is. Without TF_CONFIG the process trains alone.
//
//   tandem-tf-config
//   TF_CONFIG=... tandem-tf-config                                        each task in a terminal of its own
//   mpirun -n 3 sh -c 'export TF_CONFIG=...; exec tandem-tf-config'       two workers and a parameter server
#include <cstdio>
#include <exception>

#include "engine/engine.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/servers/server.h"
#include "strategies/strategy/arithmetic.h"

namespace {

using namespace tandem;

void train(Worker& worker) {
  ParameterServerStrategy strategy(worker);
  const auto weight = strategy.create_variable({.name = "weight"});
  for (int step = 0; step < 100; ++step) {
    strategy.run([&](const Value::Parts&) -> Value {
      weight->assign_sub((Value(weight->value()) - 3.0) * 0.1);
      return {};
    });
  }
  std::printf("%s %d of %d tasks: weight %.1f\n", worker.job().c_str(), worker.task(), worker.count(),
              host_number(worker, weight->read()));
}

}  // namespace

int main() {
  try {
    const TfConfigResolver resolver;
    const ClusterSpec cluster = resolver.cluster_spec();
    start_task_of(resolver);
    EngineOptions options;
    options.workers = workers_of(cluster, DeviceType::cpu, 1);
    open_engine("mpi", std::move(options))->run([&](Worker& worker) {
      if (worker.job() == "ps") return Server(cluster, resolver.task_type(), resolver.task_id()).join(worker);
      train(worker);
    });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
