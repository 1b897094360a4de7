#include "engine/cuda/nccl_communicators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "engine/cuda/cuda_error.h"
#include "engine/cuda/gpu.h"
#include "topologies/base/error.h"

namespace tandem::cuda {

NcclId NcclId::make() {
  NcclId id;
  cuda::check(ncclGetUniqueId(&id.id_), "ncclGetUniqueId");
  return id;
}

std::string NcclId::text() const {
  std::array<unsigned char, sizeof(id_.internal)> bytes{};
  std::memcpy(bytes.data(), id_.internal, bytes.size());
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

NcclId NcclId::parse(std::string_view text) {
  NcclId id;
  constexpr std::size_t kDigits = 2 * sizeof(id.id_.internal);
  if (text.size() != kDigits) {
    throw Error(fmt::format("an NCCL id has {} hexadecimal digits, found {}", kDigits, text.size()));
  }
  for (std::size_t i = 0; i < sizeof(id.id_.internal); ++i) {
    unsigned char byte = 0;
    const char* digits = text.data() + 2 * i;
    if (const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16); end != digits + 2) {
      throw Error(
          fmt::format("an NCCL id has hexadecimal digits only, found '{}' at {}", text.substr(2 * i, 2), 2 * i));
    }
    id.id_.internal[i] = static_cast<char>(byte);
  }
  return id;
}

NcclCommunicators::NcclCommunicators(const NcclId& id, int size, std::vector<NcclMember> members)
    : members_(std::move(members)), handles_(members_.size()) {
  begin_group();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const UseGpu use(members_[i].gpu);
    const ncclResult_t result = ncclCommInitRank(&handles_[i], size, id.handle(), members_[i].rank);
    if (result == ncclSuccess || result == ncclInProgress) continue;
    ncclGroupEnd();
    cuda::check(result, "ncclCommInitRank", fmt::format("rank {} of {}, {}", members_[i].rank, size, members_[i].name));
  }
  end_group(fmt::format("the start of {} of {} ranks", members_.size(), size));
}

NcclCommunicators::~NcclCommunicators() {
  for (ncclComm_t handle : handles_) ncclCommDestroy(handle);
}

std::mutex& NcclCommunicators::launch_order() {
  static std::mutex order;
  return order;
}

void NcclCommunicators::begin_group() {
  cuda::check(ncclGroupStart(), "ncclGroupStart");
}

void NcclCommunicators::end_group(std::string_view what) {
  cuda::check(ncclGroupEnd(), "ncclGroupEnd", what);
}

void NcclCommunicators::check_usable() const {
  if (handles_.empty()) throw RunError("the NCCL communicator was given up after a missed deadline");
}

void NcclCommunicators::abort() {
  const std::lock_guard lock(mutex_);
  for (ncclComm_t handle : handles_) ncclCommAbort(handle);
  handles_.clear();
}

void NcclCommunicators::check() {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    const auto where = [&] { return fmt::format("rank {}, {}", members_[i].rank, members_[i].name); };
    ncclResult_t state = ncclSuccess;
    cuda::check(ncclCommGetAsyncError(handles_[i], &state), "ncclCommGetAsyncError", members_[i].name);
    if (state != ncclSuccess && state != ncclInProgress) cuda::check(state, "NCCL", where());
  }
}

}  // namespace tandem::cuda
