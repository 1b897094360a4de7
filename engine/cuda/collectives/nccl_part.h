// A process's part in an NCCL communicator that several processes share. They connect in the first call that they
// execute, because only then is each of them known to wait for the others.
//
// Threads: as for threads::SpanningPart.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cuda/collectives/nccl_collectives.h"
#include "engine/cuda/device/gpu_watch.h"
#include "engine/threads/process_devices.h"

namespace tandem::cuda {

class NcclPart final : public threads::SpanningPart {
 public:
  // `devices` names those of all ranks; `members` are those of this process. `watch` outlives the part.
  NcclPart(std::vector<std::string> devices, std::vector<NcclMember> members, GpuWatch& watch)
      : devices_(std::move(devices)), members_(std::move(members)), watch_(watch) {}

  std::string invitation() override;
  void execute(const threads::CollectiveCall& call, const std::string& invitation) override;
  void abort() override;

 private:
  std::shared_ptr<NcclCollectives> connect(const threads::CollectiveCall& call, const std::string& invitation);
  std::shared_ptr<NcclCollectives> collectives();  // null before they are connected

  const std::vector<std::string> devices_;
  const std::vector<NcclMember> members_;
  GpuWatch& watch_;
  std::mutex mutex_;        // guards the rest
  std::string invitation_;  // the NCCL id that this process has made; "" if none
  std::shared_ptr<NcclCollectives> collectives_;
};

}  // namespace tandem::cuda
