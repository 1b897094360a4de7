#include "engine/mpi/transport/tcp_arrivals.h"

#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "topologies/base/error.h"

namespace tandem::mpi {

std::shared_ptr<Receipt> Arrivals::expect(const ArrivalKey& key, void* to, std::size_t bytes) {
  auto receipt = std::make_shared<Receipt>();
  receipt->to = static_cast<std::byte*>(to);
  receipt->bytes = bytes;
  return add(key, std::move(receipt));
}

std::shared_ptr<Receipt> Arrivals::expect_text(const ArrivalKey& key) {
  return add(key, std::make_shared<Receipt>());
}

std::shared_ptr<Receipt> Arrivals::add(const ArrivalKey& key, std::shared_ptr<Receipt> receipt) {
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[key];
  if (queue.kept.empty()) {
    if (lost_.contains(key.from)) {
      queues_.erase(key);
      lock.unlock();
      fail(*receipt);
      return receipt;
    }
    queue.expected.push_back(receipt);
    return receipt;
  }
  std::string bytes = std::move(queue.kept.front());
  queue.kept.pop_front();
  if (queue.kept.empty()) queues_.erase(key);
  lock.unlock();
  fill(*receipt, std::move(bytes));
  return receipt;
}

void Arrivals::wait(const Receipt& receipt) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return receipt.is_done.load(); });
}

std::shared_ptr<Receipt> Arrivals::waiting(const ArrivalKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(key);
  if (found == queues_.end() || found->second.expected.empty()) return nullptr;
  std::shared_ptr<Receipt> receipt = std::move(found->second.expected.front());
  found->second.expected.pop_front();
  if (found->second.expected.empty()) queues_.erase(found);
  return receipt;
}

void Arrivals::finish(Receipt& receipt) {
  {
    const std::lock_guard lock(mutex_);
    receipt.is_done.store(true);
  }
  done_.notify_all();
}

void Arrivals::fail(Receipt& receipt) {
  receipt.is_lost.store(true);
  receipt.text.clear();  // a part of it may have come
  finish(receipt);
}

void Arrivals::lose(int rank) {
  std::vector<std::shared_ptr<Receipt>> failed;
  {
    const std::lock_guard lock(mutex_);
    lost_.insert(rank);
    for (auto queue = queues_.begin(); queue != queues_.end();) {
      auto& expected = queue->second.expected;
      const bool is_of_rank = queue->first.from == rank && !expected.empty();
      if (is_of_rank) failed.insert(failed.end(), expected.begin(), expected.end());
      queue = is_of_rank ? queues_.erase(queue) : std::next(queue);
    }
  }
  for (const auto& receipt : failed) fail(*receipt);
}

void Arrivals::keep(const ArrivalKey& key, std::string bytes) {
  std::unique_lock lock(mutex_);
  Queue& queue = queues_[key];
  if (queue.expected.empty()) {
    queue.kept.push_back(std::move(bytes));
    return;
  }
  // Somebody has begun to wait while the bytes were read.
  const std::shared_ptr<Receipt> receipt = std::move(queue.expected.front());
  queue.expected.pop_front();
  if (queue.expected.empty()) queues_.erase(key);
  lock.unlock();
  fill(*receipt, std::move(bytes));
}

void Arrivals::fill(Receipt& receipt, std::string bytes) {
  if (receipt.to == nullptr) {
    receipt.text = std::move(bytes);
  } else {
    TANDEM_CHECK(bytes.size() == receipt.bytes, "a frame is as long as the memory that waits for it");
    if (!bytes.empty()) std::memcpy(receipt.to, bytes.data(), bytes.size());
  }
  finish(receipt);
}

}  // namespace tandem::mpi
