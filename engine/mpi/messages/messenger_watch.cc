// What a Messenger does about ranks that are lost or interrupted.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "engine/launched_job.h"
#include "engine/mpi/messages/messenger.h"

namespace tandem::mpi {
namespace {

using threads::Clock;

constexpr auto kFarewell = std::chrono::seconds(1);  // how long rank 0 waits for the others to say why they end
// How long rank 0 has to end an interrupted job. Launchers kill the ranks that they have sent SIGTERM long before: Open
// MPI's after five seconds.
constexpr auto kSignalPatience = std::chrono::seconds(15);

}  // namespace

void Messenger::say_alive() {
  ByteWriter bytes;
  bytes.put(MessageKind::alive);
  const std::string message = bytes.take();
  if (!coordinator_) {
    if (!is_leaving_.load()) transport_.post(0, message);
    return;
  }
  const std::lock_guard lock(coordinator_mutex_);
  for (int to = 1; to < transport_.size(); ++to) {
    if (!coordinator_->has_left(to)) transport_.post(to, message);
  }
}

std::exception_ptr Messenger::loss_error(int rank) const {
  return std::make_exception_ptr(
      LostRankError(fmt::format("{} was lost", places_[static_cast<std::size_t>(rank)]), rank));
}

std::vector<LostRank> Messenger::lost_ranks() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

// Goes on without a rank. The processes of a collective could not agree on whether it has taken place.
void Messenger::lose(int rank) {
  if (agreement_.needs(rank)) {
    const std::string reason =
        fmt::format("{} was lost in the middle of a collective; the job ends", places_[static_cast<std::size_t>(rank)]);
    std::fputs(fmt::format("tandem: {}\n", reason).c_str(), stderr);
    transport_.abort(kRunFailed, reason);
  }
  is_lost_[static_cast<std::size_t>(rank)] = true;
  if (handler_ != nullptr) handler_->lose(rank, loss_error(rank));
  {
    const std::lock_guard lock(mutex_);
    lost_.push_back({rank, Clock::now()});
    received_at_last_look_ = -1;
  }
  tell_loss(rank);
  waiters_.wake_all();
}

// Rank 0 tells all, because a rank that does not answer it may still be connected to the others.
void Messenger::tell_loss(int rank) {
  if (!coordinator_) return tell(MessageKind::gone, [rank](ByteWriter& bytes) { bytes.put(rank); });
  std::fputs(
      fmt::format("tandem: {} was lost; the job goes on without it\n", places_[static_cast<std::size_t>(rank)]).c_str(),
      stderr);
  const std::lock_guard lock(coordinator_mutex_);
  for (int to = 1; to < transport_.size(); ++to) {
    ByteWriter bytes;
    if (to != rank && !coordinator_->has_left(to)) transport_.post(to, bytes.put(MessageKind::gone).put(rank).take());
  }
  coordinator_->lose(rank);
}

// Rank 0 listens to all other ranks, and all others to rank 0.
void Messenger::check_silence() {
  if (is_leaving_.load() || has_lost_coordinator_.load()) return;
  for (int rank = 0; rank < transport_.size(); ++rank) {
    if (rank == transport_.rank() || (!coordinator_ && rank != 0)) continue;
    {
      const std::lock_guard lock(coordinator_mutex_);
      if (coordinator_ && coordinator_->has_left(rank)) continue;
    }
    Clock::time_point heard;
    {
      const std::lock_guard lock(receiving_mutex_);
      heard = heard_[static_cast<std::size_t>(rank)];
    }
    if (std::chrono::duration<double>(Clock::now() - heard).count() < kSilence_s) continue;
    transport_.drop(rank);
    if (!transport_.is_lost(rank)) end_without(rank);
  }
}

// Every rank says why it ends, because a launcher may not end the others (mpirun --enable-recovery), and these are not
// told by MPI. So rank 0 tells them, and waits a moment before it ends the job.
void Messenger::end_without(int rank) {
  const std::string reason =
      fmt::format("{} has not answered {} for {} s; the job ends", places_[static_cast<std::size_t>(rank)],
                  places_[static_cast<std::size_t>(transport_.rank())], kSilence_s);
  std::fputs(fmt::format("tandem: {}\n", reason).c_str(), stderr);
  for (int to = 1; coordinator_ && to < transport_.size(); ++to) {
    ByteWriter bytes;
    if (to != rank) transport_.post(to, bytes.put(MessageKind::lost).put_text(reason).take());
  }
  if (coordinator_) std::this_thread::sleep_for(kFarewell);
  transport_.abort(kRunFailed, reason);
}

void Messenger::end_with(const std::string& reason) {
  const std::string& place = places_[static_cast<std::size_t>(transport_.rank())];
  std::fputs(fmt::format("tandem: {} ends: {}\n", place, reason).c_str(), stderr);
  std::this_thread::sleep_for(2 * kFarewell);
  transport_.abort(kRunFailed, reason);
}

// Rank 0 ends the job for all, because a launcher that is interrupted sends the signal to all ranks and the user wants
// to read it once. A rank that rank 0 does not hear ends the job itself.
void Messenger::check_signal() {
  const int signal = signal_to_job();
  if (signal == 0) return;
  const Clock::time_point now = Clock::now();
  if (coordinator_ || (signalled_at_ && now - *signalled_at_ > kSignalPatience)) {
    end_interrupted(transport_.rank(), signal);
  }
  if (signalled_at_) return;
  signalled_at_ = now;
  tell(MessageKind::signal, [signal](ByteWriter& bytes) { bytes.put(signal); });
}

void Messenger::end_interrupted(int rank, int signal) {
  const std::string reason = fmt::format("{} was interrupted (SIG{}); the job ends",
                                         places_[static_cast<std::size_t>(rank)], sigabbrev_np(signal));
  std::fputs(fmt::format("tandem: {}\n", reason).c_str(), stderr);
  transport_.abort(kInterrupted, reason);
}

}  // namespace tandem::mpi
