#include "strategies/types/one_device.h"

#include "strategies/strategy/context.h"
#include "strategies/types/replicated_extended.h"
#include "strategies/variables/components.h"
#include "strategies/variables/replicated_variables.h"

namespace tandem {
namespace {

class OneDeviceExtended final : public ReplicatedExtended {
 public:
  OneDeviceExtended(Worker& worker, Device& device) : ReplicatedExtended(worker, {.devices = {&device}}) {}
  bool has_one_replica_by_kind() const override { return true; }

 protected:
  std::shared_ptr<Variable> make_variable(const VariableSpec& spec) override {
    return std::make_shared<PlainVariable>(strategy(), spec,
                                           make_components(spec, parameter_devices(), worker().cpu()).front());
  }
};

}  // namespace

OneDeviceStrategy::OneDeviceStrategy(Worker& worker, Device& device)
    : Strategy("one_device", std::make_unique<OneDeviceExtended>(worker, device)) {}

OneDeviceStrategy::OneDeviceStrategy(const std::string& device)
    : OneDeviceStrategy(worker_of_task(), *Destinations(device).resolve(worker_of_task()).front()) {}

}  // namespace tandem
