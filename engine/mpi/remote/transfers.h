// Moves values between memory of this process and memory of another. The other process takes part through its
// messenger, whatever its threads do.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/mpi/remote/remote_access.h"

namespace tandem::mpi {

class Transfers {
 public:
  Transfers(RemoteAccess& access, Transport& transport) : access_(access), transport_(transport) {}

  // Gets or puts the values, on the thread of a stream, and returns when they have arrived. One of the two tensors is
  // in memory of this process. Returns the error where the other process was lost.
  std::exception_ptr copy(const Tensor& to, const Tensor& from);
  void handle(int from, RemoteKind kind, ByteReader& bytes);
  // Checks the transfers under way. Returns false if none has ended. One thread at a time may call it.
  bool progress();
  // Ends the waits for values that go to a lost process; values that come from it have failed.
  void lose(int process);
  bool is_busy() const { return under_way_count_.load() > 0; }

 private:
  class Done;
  struct UnderWay {
    std::unique_ptr<Transfer> transfer;
    std::function<void(bool has_failed)> ended;
  };

  std::exception_ptr get(const Tensor& to, const Tensor& from);
  std::exception_ptr put(const Tensor& to, const Tensor& from);
  void add(std::unique_ptr<Transfer> transfer, std::function<void(bool has_failed)> ended);
  void take_whole(int from, std::byte* to, std::int64_t size, int tag);
  int next_tag();

  RemoteAccess& access_;
  Transport& transport_;
  std::atomic<unsigned> tags_{0};
  std::atomic<int> under_way_count_{0};
  std::mutex mutex_;  // guards under_way_
  std::vector<UnderWay> under_way_;
  struct Put {
    int process = 0;
    std::shared_ptr<Done> done{};
  };
  std::mutex puts_mutex_;    // guards puts_
  std::map<int, Put> puts_;  // by tag; until the receiver confirms them
};

}  // namespace tandem::mpi
