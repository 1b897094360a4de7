// One program in two worlds: on threads of this machine, and on the GPUs of a simulated DGX A100.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "engine/engine.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "topologies/readers/catalog.h"

namespace {

using namespace tandem;

double train(Worker& worker) {
  MirroredStrategy strategy(worker, {worker.devices().begin(), worker.devices().end()});
  const Scope scope = strategy.scope();
  const auto weight = create_variable({.name = "weight", .aggregation = VariableAggregation::mean});
  strategy.run([&](const Value::Parts&) {  // once on each device
    const double gradient = get_replica_context()->replica_id_in_sync_group();
    weight->assign_sub(gradient);  // subtracts the mean of the replicas' gradients on every device
    return Value();
  });
  return host_number(worker, weight->read());
}

// From the start of the first record to the end of the last one.
double length_us(const Timeline& timeline) {
  Nanoseconds start = timeline.records.front().start_ns, end = start;
  for (const Record& record : timeline.records) {
    start = std::min(start, record.start_ns);
    end = std::max(end, record.end_ns);
  }
  return 1e-3 * static_cast<double>(end - start);
}

void run_on(const char* engine, EngineOptions options) {
  options.values = ValueMode::real;
  double weight = 0;
  const Timeline timeline =
      open_engine(engine, std::move(options))->run([&](Worker& worker) { weight = train(worker); });
  std::printf("%s: weight %.1f after %.1f us\n", engine, weight, length_us(timeline));
}

}  // namespace

int main() {
  EngineOptions here;
  here.workers = {{.device_count = 4}};
  run_on("cpu", here);

  EngineOptions dgx;
  dgx.workers = {{.device_type = DeviceType::gpu, .device_count = 4}};
  dgx.topology = std::make_shared<Topology>(load_catalog_node("dgx-a100"));
  run_on("sim", dgx);
}
