#include "engine/cuda/collectives/nccl_part.h"

#include "topologies/base/error.h"

namespace tandem::cuda {

std::shared_ptr<NcclCollectives> NcclPart::collectives() {
  const std::lock_guard lock(mutex_);
  return collectives_;
}

std::string NcclPart::invitation() {
  const std::lock_guard lock(mutex_);
  if (collectives_) return "";
  if (invitation_.empty()) invitation_ = NcclId::make().text();
  return invitation_;
}

void NcclPart::execute(const threads::CollectiveCall& call, const std::string& invitation) {
  std::shared_ptr<NcclCollectives> connected = collectives();
  if (!connected && invitation.empty()) throw RunError("this process has failed to connect to the group by NCCL");
  if (!connected) connected = connect(call, invitation);
  connected->execute(call);
}

// Nothing else connects meanwhile, because the calls of a process are executed one at a time.
std::shared_ptr<NcclCollectives> NcclPart::connect(const threads::CollectiveCall& call, const std::string& invitation) {
  auto communicators =
      std::make_shared<NcclCommunicators>(NcclId::parse(invitation), static_cast<int>(devices_.size()), members_,
                                          watch_.timeout_s(), [&call] { return call.is_run_stopped(); });
  watch_.add(communicators);
  const std::lock_guard lock(mutex_);
  collectives_ = std::make_shared<NcclCollectives>(std::move(communicators), devices_);
  return collectives_;
}

void NcclPart::abort() {
  if (const std::shared_ptr<NcclCollectives> connected = collectives()) connected->abort();
}

}  // namespace tandem::cuda
