// Brings the data frames that arrive together with the memory that waits for them, whichever comes first.
//
// Threads: any.
#pragma once

#include <atomic>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "engine/mpi/transport/tcp_frame.h"

namespace tandem::mpi {

// Frames of one key arrive in the order in which they were sent.
struct ArrivalKey {
  int from = 0;  // rank
  FrameStream stream = FrameStream::none;
  std::uint64_t group = 0;
  std::int32_t tag = 0;

  auto operator<=>(const ArrivalKey&) const = default;
};

// A frame that is waited for.
struct Receipt {
  std::byte* to = nullptr;  // null: `text` gets the bytes, however many there are
  std::size_t bytes = 0;
  std::string text{};
  std::atomic<bool> is_done = false;
  std::atomic<bool> is_lost = false;  // the rank was lost before all of the frame had come; written before is_done
};

class Arrivals {
 public:
  // The next frame of the key goes to this memory, which must not be used until the receipt is done.
  std::shared_ptr<Receipt> expect(const ArrivalKey& key, void* to, std::size_t bytes);
  std::shared_ptr<Receipt> expect_text(const ArrivalKey& key);
  void wait(const Receipt& receipt);

  // For the one thread that reads the frames of a rank: returns who waits for the next frame of the key, to be filled
  // and passed to finish(), or null; then keep() takes its bytes.
  std::shared_ptr<Receipt> waiting(const ArrivalKey& key);
  void finish(Receipt& receipt);
  void keep(const ArrivalKey& key, std::string bytes);
  void fail(Receipt& receipt);  // instead of finish(): the rank was lost

  // Fails all receipts for frames of the rank that have not come, now and later.
  void lose(int rank);

 private:
  struct Queue {
    std::deque<std::shared_ptr<Receipt>> expected;
    std::deque<std::string> kept;  // never both
  };
  std::shared_ptr<Receipt> add(const ArrivalKey& key, std::shared_ptr<Receipt> receipt);
  void fill(Receipt& receipt, std::string bytes);

  std::mutex mutex_;  // guards queues_ and lost_
  std::condition_variable done_;
  std::map<ArrivalKey, Queue> queues_;
  std::set<int> lost_;
};

}  // namespace tandem::mpi
