#include "strategies/types/central_storage.h"

#include "strategies/strategy/context.h"
#include "strategies/types/stored_extended.h"

namespace tandem {
namespace {

class CentralStorageExtended final : public StoredExtended {
 public:
  using StoredExtended::StoredExtended;

 protected:
  Device& place(const VariableSpec& /*spec*/) override { return *parameter_devices().front(); }
  std::shared_ptr<StoredTensor> store(const VariableSpec& spec, Device& device) override {
    return new_store(spec, device);
  }
};

}  // namespace

CentralStorageStrategy::CentralStorageStrategy() : CentralStorageStrategy(worker_of_task()) {}

CentralStorageStrategy::CentralStorageStrategy(Worker& worker, std::vector<Device*> compute_devices,
                                               Device* parameter_device)
    : Strategy("central_storage", [&] {
        std::vector<Device*> compute = or_all_of(worker, std::move(compute_devices));
        std::vector<Device*> parameters =
            parameter_device ? std::vector<Device*>{parameter_device} : local_parameter_device(worker, compute);
        return std::make_unique<CentralStorageExtended>(worker, std::move(compute), std::move(parameters));
      }()) {}

}  // namespace tandem
