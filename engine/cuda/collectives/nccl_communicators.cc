#include "engine/cuda/collectives/nccl_communicators.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "engine/cuda/device/cuda_error.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "topologies/base/error.h"

namespace tandem::cuda {
namespace {

// The latest kernel of a communicator on each GPU. Guarded by the LaunchTurn.
struct LatestLaunch {
  const NcclCommunicators* owner = nullptr;
  cudaEvent_t event{};
};
std::map<int, LatestLaunch>& latest_launches() {
  static std::map<int, LatestLaunch>& launches = *new std::map<int, LatestLaunch>;
  return launches;
}
void forget_launches(const NcclCommunicators* owner) {
  std::erase_if(latest_launches(), [&](const auto& latest) { return latest.second.owner == owner; });
}

// A stream and some memory for each member.
class WarmUp {
 public:
  struct Place {
    int gpu = 0;
    cudaStream_t stream{};
    float* block = nullptr;
  };

  WarmUp(const std::vector<NcclMember>& members, std::size_t bytes) {
    places_.reserve(members.size());
    for (const NcclMember& member : members) {
      const UseGpu use(member.gpu);
      Place& place = places_.emplace_back(Place{.gpu = member.gpu});
      void* block = nullptr;
      check(cudaStreamCreateWithPriority(&place.stream, cudaStreamNonBlocking, 0), "cudaStreamCreateWithPriority",
            member.name);
      check(cudaMallocAsync(&block, bytes, place.stream), "cudaMallocAsync", member.name);
      place.block = static_cast<float*>(block);
    }
  }
  ~WarmUp() {
    for (const Place& place : places_) {
      if (place.block != nullptr) cudaFreeAsync(place.block, place.stream);
      if (place.stream != nullptr) cudaStreamDestroy(place.stream);
    }
  }
  WarmUp(const WarmUp&) = delete;
  WarmUp& operator=(const WarmUp&) = delete;

  const std::vector<Place>& places() const { return places_; }
  void abandon() { places_.clear(); }  // what a GPU may still use

 private:
  std::vector<Place> places_;
};

}  // namespace

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

NcclCommunicators::NcclCommunicators(const NcclId& id, int size, std::vector<NcclMember> members, double timeout_s,
                                     const IsStopped& is_stopped)
    : members_(std::move(members)), timeout_s_(timeout_s), handles_(members_.size()) {
  const LaunchTurn turn;
  const KeepGpu keep;
  try {
    start(id, size, is_stopped);
    warm_up(size, is_stopped);
  } catch (...) {
    abort_together(give_up());
    for (cudaEvent_t event : launched_) cudaEventDestroy(event);
    forget_launches(this);
    throw;
  }
}

// Frees all together, because the last to be freed waits for the others. Keeps what a hanging GPU may use.
NcclCommunicators::~NcclCommunicators() {
  const bool hangs = std::any_of(members_.begin(), members_.end(), [](const NcclMember& member) {
    return member.device != nullptr && member.device->hangs();
  });
  try {
    const LaunchTurn turn;
    const KeepGpu keep;
    forget_launches(this);
    if (hangs) return;
    for (cudaEvent_t event : launched_) cudaEventDestroy(event);
    if (handles_.empty()) return;
    ncclGroupStart();
    for (ncclComm_t handle : handles_) ncclCommDestroy(handle);
    ncclGroupEnd();
  } catch (const RunError&) {  // no turn, because a GPU hangs
  }
}

void NcclCommunicators::start(const NcclId& id, int size, const IsStopped& is_stopped) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const std::string what = fmt::format("the start of {} of {} ranks", members_.size(), size);
  call_group(what, [&] {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const UseGpu use(members_[i].gpu);
      const ncclResult_t result = ncclCommInitRankConfig(&handles_[i], size, id.handle(), members_[i].rank, &config);
      if (result == ncclSuccess || result == ncclInProgress) continue;
      cuda::check(result, "ncclCommInitRank",
                  fmt::format("rank {} of {}, {}", members_[i].rank, size, members_[i].name));
    }
  });
  wait_for_nccl(what, is_stopped);
  for (const NcclMember& member : members_) {
    const UseGpu use(member.gpu);
    cudaEvent_t event{};
    cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags", member.name);
    launched_.push_back(event);
  }
}

// Executes the first all-reduce and the first messages here, so that later calls, some with a timeout, need not wait
// until GPUs are connected.
void NcclCommunicators::warm_up(int size, const IsStopped& is_stopped) {
  const auto ranks = static_cast<std::size_t>(size);
  WarmUp warm_up(members_, 2 * ranks * sizeof(float));
  const auto place_of = [&](const NcclMember& member) -> const WarmUp::Place& {
    return warm_up.places()[static_cast<std::size_t>(&member - members_.data())];
  };
  const auto stream_of = [&](const NcclMember& member) { return place_of(member).stream; };
  const auto all_reduce = [&](const NcclMember& member, ncclComm_t handle) {
    const WarmUp::Place& place = place_of(member);
    cuda::check(ncclAllReduce(place.block, place.block, 1, ncclFloat32, ncclSum, handle, place.stream), "ncclAllReduce",
                text_of(member));
  };
  const auto messages = [&](const NcclMember& member, ncclComm_t handle) {
    const WarmUp::Place& place = place_of(member);
    for (int peer = 0; peer < size; ++peer) {
      float* from = place.block + peer;
      cuda::check(ncclSend(from, 1, ncclFloat32, peer, handle, place.stream), "ncclSend", text_of(member));
      cuda::check(ncclRecv(from + ranks, 1, ncclFloat32, peer, handle, place.stream), "ncclRecv", text_of(member));
    }
  };
  in_group(fmt::format("the first all_reduce of {} ranks", size), stream_of, all_reduce, is_stopped);
  in_group(fmt::format("the first messages of {} ranks", size), stream_of, messages, is_stopped);
  const PollPause pause;
  StopGrace grace(is_stopped);
  for (const WarmUp::Place& place : warm_up.places()) {
    while (query(place.stream) == cudaErrorNotReady) {
      const bool is_given_up = grace.is_over();
      if (is_given_up || pause.is_over(timeout_s_)) {
        warm_up.abandon();
        throw RunError(fmt::format("the first collective of {} ranks {}", size,
                                   is_given_up ? "was given up, because the run has ended"
                                               : fmt::format("has not ended in {} s", timeout_s_)));
      }
      check();
      pause();
    }
    cuda::check(query(place.stream), "cudaStreamQuery", "the first collective");
  }
}

// NCCL's kernels wait for their peers on GPUs that several communicators may share, and a GPU guarantees room for only
// one such kernel. So all GPUs must execute the calls of all communicators in the same order, that of their launches.
void NcclCommunicators::in_group(std::string_view what, const StreamOf& stream_of, const Issue& issue,
                                 const IsStopped& is_stopped) {
  const LaunchTurn turn;
  const KeepGpu keep;
  order_behind_others(stream_of);
  call_group(what, [&] {
    for (std::size_t i = 0; i < members_.size(); ++i) issue(members_[i], handles_[i]);
  });
  wait_for_nccl(what, is_stopped);
  note_launched(stream_of);
}

void NcclCommunicators::call_group(std::string_view what, const std::function<void()>& calls) {
  const std::lock_guard lock(mutex_);
  check_usable();
  cuda::check(ncclGroupStart(), "ncclGroupStart");
  try {
    calls();
  } catch (...) {
    ncclGroupEnd();  // closes the group; the first error is the one to report
    throw;
  }
  const ncclResult_t result = ncclGroupEnd();
  if (result != ncclInProgress) cuda::check(result, "ncclGroupEnd", what);
}

void NcclCommunicators::wait_for_nccl(std::string_view what, const IsStopped& is_stopped) {
  const PollPause pause;
  StopGrace grace(is_stopped);
  while (is_in_progress(what)) {
    if (grace.is_over()) {
      abort_together(give_up());
      throw RunError(fmt::format("{}: its launch was given up, because the run has ended", what));
    }
    if (pause.is_over(timeout_s_))
      throw RunError(fmt::format("{}: NCCL has not launched it in {} s", what, timeout_s_));
    pause();
  }
}

bool NcclCommunicators::is_in_progress(std::string_view what) {
  const std::lock_guard lock(mutex_);
  check_usable();
  bool is_in_progress = false;
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    ncclResult_t state = ncclSuccess;
    cuda::check(ncclCommGetAsyncError(handles_[i], &state), "ncclCommGetAsyncError", members_[i].name);
    is_in_progress = is_in_progress || state == ncclInProgress;
    if (state == ncclInProgress) continue;
    cuda::check(state, "ncclGroupEnd", fmt::format("{}, {}", what, text_of(members_[i])));
  }
  return is_in_progress;
}

void NcclCommunicators::check_usable() const {
  if (handles_.empty()) throw RunError("the NCCL communicator was given up after a missed deadline");
}

std::string NcclCommunicators::text_of(const NcclMember& member) const {
  return fmt::format("rank {}, {}", member.rank, member.name);
}

void NcclCommunicators::order_behind_others(const StreamOf& stream_of) const {
  for (const NcclMember& member : members_) {
    cudaStream_t stream = stream_of(member);
    const auto latest = latest_launches().find(member.gpu);
    if (stream == nullptr || latest == latest_launches().end() || latest->second.owner == this) continue;
    const UseGpu use(member.gpu);
    cuda::check(cudaStreamWaitEvent(stream, latest->second.event, 0), "cudaStreamWaitEvent", text_of(member));
  }
}

void NcclCommunicators::note_launched(const StreamOf& stream_of) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    cudaStream_t stream = stream_of(members_[i]);
    if (stream == nullptr) continue;
    const UseGpu use(members_[i].gpu);
    cuda::check(cudaEventRecord(launched_[i], stream), "cudaEventRecord", text_of(members_[i]));
    latest_launches()[members_[i].gpu] = {this, launched_[i]};
  }
}

std::vector<ncclComm_t> NcclCommunicators::give_up() {
  const std::lock_guard lock(mutex_);
  std::vector<ncclComm_t> handles = std::exchange(handles_, {});
  handles.erase(std::remove(handles.begin(), handles.end(), nullptr), handles.end());
  return handles;
}

void NcclCommunicators::check() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (std::size_t i = 0; i < handles_.size(); ++i) {
    ncclResult_t state = ncclSuccess;
    cuda::check(ncclCommGetAsyncError(handles_[i], &state), "ncclCommGetAsyncError", members_[i].name);
    if (state != ncclSuccess && state != ncclInProgress) cuda::check(state, "NCCL", text_of(members_[i]));
  }
}

}  // namespace tandem::cuda
