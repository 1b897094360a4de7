#include "tests/cuda_emulation/nccl_clique.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tandem::emulation {

void fail(const char* what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

ncclResult_t check_gpus(const std::vector<int>& gpus, std::string& message) {
  for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      if (gpus[rank] != gpus[other]) continue;
      message = "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " + std::to_string(other);
      return ncclInvalidUsage;
    }
  }
  return ncclSuccess;
}

bool Contribution::agrees_with(const Contribution& other) const {
  return kind == other.kind && count == other.count && type == other.type && operation == other.operation &&
         root == other.root;
}

void LocalClique::join(int rank, int gpu) {
  const std::lock_guard lock(mutex_);
  gpus_.at(static_cast<std::size_t>(rank)) = gpu;
  ++joined_;
  changed_.notify_all();
}

ncclResult_t LocalClique::wait_for_all(const std::atomic<bool>& is_aborted, std::string& message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return joined_ == ranks() || is_aborted; });
  if (is_aborted) return ncclInternalError;
  return check_gpus(gpus_, message);
}

void LocalClique::complete(Call& call) {
  std::vector<Contribution> all;
  for (const auto& [rank, contribution] : call.ranks) {
    if (!contribution.agrees_with(call.ranks.begin()->second)) fail("ranks call different collectives");
    all.push_back(contribution);
  }
  execute(all);
  call.is_done = true;
  changed_.notify_all();
}

bool LocalClique::meet(int rank, const Contribution& mine) {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = calls_[static_cast<std::size_t>(rank)]++;
  Call& call = under_way_[number];
  call.ranks[rank] = mine;
  if (call.ranks.size() == gpus_.size() && !is_aborted()) complete(call);
  changed_.wait(lock, [&] { return call.is_done || is_aborted(); });
  const bool is_done = call.is_done;
  if (++call.left == ranks()) under_way_.erase(number);
  return is_done;
}

void LocalClique::take(Parcel& parcel, const Message& mine) {
  if (parcel.message.bytes != mine.bytes) fail("a send and its receive differ in size");
  std::memmove(mine.at, parcel.message.at, mine.bytes);
  parcel.is_taken = true;
}

// All is posted before anything is waited for, as NCCL does within a group.
bool LocalClique::exchange(int rank, const std::vector<Message>& mine) {
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<Parcel>> sent;
  for (const Message& message : mine) {
    if (!message.is_send) continue;
    sent.push_back(std::make_shared<Parcel>(Parcel{message}));
    mail_[{rank, message.peer}].push_back(sent.back());
  }
  changed_.notify_all();
  for (const Message& message : mine) {
    if (message.is_send) continue;
    Mailbox& mailbox = mail_[{message.peer, rank}];
    changed_.wait(lock, [&] { return !mailbox.empty() || is_aborted(); });
    if (is_aborted()) return false;
    take(*mailbox.front(), message);
    mailbox.pop_front();
    changed_.notify_all();
  }
  for (const auto& parcel : sent) changed_.wait(lock, [&] { return parcel->is_taken || is_aborted(); });
  return !is_aborted();
}

bool LocalClique::has_ended() {
  const std::lock_guard lock(mutex_);
  return is_aborted();
}

void LocalClique::abort() {
  const std::lock_guard lock(mutex_);
  ++aborted_;
  changed_.notify_all();
}

}  // namespace tandem::emulation
