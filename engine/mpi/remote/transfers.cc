#include "engine/mpi/remote/transfers.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace tandem::mpi {
namespace {

constexpr unsigned kTransferTags = 32'000;  // after so many transfers, the first ones have ended

}  // namespace

class Transfers::Done final : public threads::Wait {
 public:
  explicit Done(std::string text) : text_(std::move(text)) {}
  bool is_over() const override { return left_.load() == 0; }
  std::string text() const override { return text_; }
  void expect(int count) { left_.store(count); }
  void note() { left_.fetch_sub(1); }

 private:
  const std::string text_;
  std::atomic<int> left_{1};
};

int Transfers::next_tag() {
  return kFirstFreeTag + static_cast<int>(tags_.fetch_add(1) % kTransferTags);
}

void Transfers::add(std::unique_ptr<Transfer> transfer, std::function<void(bool has_failed)> ended) {
  under_way_count_.fetch_add(1);
  const std::lock_guard lock(mutex_);
  under_way_.push_back({std::move(transfer), std::move(ended)});
}

std::exception_ptr Transfers::copy(const Tensor& to, const Tensor& from) {
  if (to.size_bytes() == 0) return nullptr;
  return to.buffer().is_host_accessible() ? get(to, from) : put(to, from);
}

std::exception_ptr Transfers::get(const Tensor& to, const Tensor& from) {
  const auto bytes = static_cast<std::int64_t>(to.size_bytes());
  const int process = access_.process_of(from), tag = next_tag();
  Done done("values of " + from.device().id().text());
  std::vector<std::byte> whole(access_.survives_losses() ? to.size_bytes() : 0);
  bool has_come = true;
  add(transport_.begin_receive(process, TagChooser::receiver, tag, whole.empty() ? to.data() : whole.data(), bytes),
      [&](bool has_failed) {
        has_come = !has_failed;
        done.note();
      });
  access_.say(process, RemoteKind::get, [&](ByteWriter& message) {
    message.put(reinterpret_cast<std::uint64_t>(from.data())).put(bytes).put(tag);
  });
  access_.wait_on_stream(done);
  if (!has_come) return access_.await_loss(process);
  if (!whole.empty()) std::memcpy(to.data(), whole.data(), whole.size());
  return nullptr;
}

std::exception_ptr Transfers::put(const Tensor& to, const Tensor& from) {
  const auto bytes = static_cast<std::int64_t>(to.size_bytes());
  const int process = access_.process_of(to), tag = next_tag();
  auto done = std::make_shared<Done>("values to reach " + to.device().id().text());
  done->expect(2);  // sent, and received
  {
    const std::lock_guard lock(puts_mutex_);
    puts_.emplace(tag, Put{process, done});
  }
  access_.say(process, RemoteKind::put, [&](ByteWriter& message) {
    message.put(reinterpret_cast<std::uint64_t>(to.data())).put(bytes).put(tag);
  });
  add(transport_.begin_send(process, TagChooser::sender, tag, from.data(), bytes), [done](bool) { done->note(); });
  if (access_.is_lost(process)) lose(process);  // it may have been lost before the put was noted
  access_.wait_on_stream(*done);
  return access_.loss_of(process);
}

void Transfers::handle(int from, RemoteKind kind, ByteReader& bytes) {
  if (kind == RemoteKind::put_done) {
    std::shared_ptr<Done> done;
    {
      const std::lock_guard lock(puts_mutex_);
      const auto found = puts_.find(bytes.get<int>());
      TANDEM_CHECK(found != puts_.end(), "a transfer that there is not");
      done = std::move(found->second.done);
      puts_.erase(found);
    }
    return done->note();
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of this process, which another has named
  auto* const address = reinterpret_cast<std::byte*>(bytes.get<std::uint64_t>());
  const auto size = bytes.get<std::int64_t>();
  const int tag = bytes.get<int>();
  if (kind == RemoteKind::get) return add(transport_.begin_send(from, TagChooser::receiver, tag, address, size), {});
  if (access_.survives_losses()) return take_whole(from, address, size, tag);
  add(transport_.begin_receive(from, TagChooser::sender, tag, address, size), [this, from, tag](bool) {
    access_.say(from, RemoteKind::put_done, [&](ByteWriter& message) { message.put(tag); });
  });
}

// Values of a process that is lost meanwhile come as a whole or not at all.
void Transfers::take_whole(int from, std::byte* to, std::int64_t size, int tag) {
  const auto whole = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(size));
  add(transport_.begin_receive(from, TagChooser::sender, tag, whole->data(), size),
      [this, from, to, tag, whole](bool has_failed) {
        if (has_failed) return;
        std::memcpy(to, whole->data(), whole->size());
        access_.say(from, RemoteKind::put_done, [&](ByteWriter& message) { message.put(tag); });
      });
}

void Transfers::lose(int process) {
  const std::lock_guard lock(puts_mutex_);
  for (auto put = puts_.begin(); put != puts_.end();) {
    const bool is_to_it = put->second.process == process;
    if (is_to_it) put->second.done->note();  // sent it is, or dropped
    put = is_to_it ? puts_.erase(put) : std::next(put);
  }
}

bool Transfers::progress() {
  if (!is_busy()) return false;
  std::vector<UnderWay> ended;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < under_way_.size();) {
      if (!under_way_[i].transfer->is_done()) {
        ++i;
        continue;
      }
      ended.push_back(std::move(under_way_[i]));
      under_way_[i] = std::move(under_way_.back());
      under_way_.pop_back();
    }
  }
  for (const UnderWay& each : ended) {
    if (each.ended) each.ended(each.transfer->has_failed());
    under_way_count_.fetch_sub(1);
  }
  return !ended.empty();
}

}  // namespace tandem::mpi
