#include "strategies/input/input_workers.h"

#include <fmt/format.h>

#include "engine/purpose.h"
#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"

namespace tandem {

void check_input_workers(const InputWorkers& workers) {
  if (workers.devices.empty()) throw ValueError("distributed input needs at least one device");
  checked_devices(workers.devices, "distributed input");
  if (workers.num_workers < 1 || workers.pipeline_id < 0 || workers.pipeline_id >= workers.num_workers) {
    throw ValueError(fmt::format("input pipeline {} of {} workers: the id is from 0 and below their number",
                                 workers.pipeline_id, workers.num_workers));
  }
  check_input_options(workers.options);
}

std::function<bool(bool)> agree_over(Worker& worker, std::vector<DeviceId> devices) {
  return [&worker, devices = std::move(devices)](bool has_data) {
    Communicator& communicator = worker.communicator(devices);
    if (communicator.local_devices().size() != 1) throw ValueError("an agreement needs one device of every worker");
    Device& device = *communicator.local_devices().front();
    Stream& stream = device.stream(kCommunicationStream);
    const Tensor host = worker.cpu().allocate(DType::f32, {1});
    const Tensor flag = device.allocate(DType::f32, {1});
    if (host.has_values()) host.values<float>()[0] = has_data ? 1.0F : 0.0F;
    stream.copy(flag, host);
    Stream* const streams[] = {&stream};
    const CallPurpose noted([] { return "the next step of a distributed dataset that has an end"; });
    communicator.all_reduce({&flag, 1}, Reduction::maximum, streams);
    stream.copy(host, flag);
    stream.synchronize();
    return host.has_values() ? host.values<float>()[0] > 0 : has_data;
  };
}

}  // namespace tandem
