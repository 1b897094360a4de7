#include "engine/mpi/transport/tcp_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>
#include <utility>

#include "engine/kernels/kernels.h"
#include "engine/mpi/transport/tcp_join.h"
#include "engine/mpi/transport/tcp_parts.h"
#include "engine/mpi/transport/tcp_peer.h"
#include "engine/mpi/transport/tcp_transfers.h"
#include "topologies/base/dtype.h"

namespace tandem::mpi {
namespace {

constexpr auto kLastWords = std::chrono::seconds(1);   // how long the others may take to hear why the job ends
constexpr std::int64_t kBroadcastInParts = 64 * 1024;  // bytes from which all ranks pass a broadcast on

FrameStream stream_of(TagChooser chooser) {
  return chooser == TagChooser::receiver ? FrameStream::receiver_chooses : FrameStream::sender_chooses;
}

// Tells the ranks of a channel and its group apart from others: equal on all ranks.
std::uint64_t channel_key(const Channel& channel) {
  std::uint64_t key = channel.group ^ 0xcbf29ce484222325ULL;
  for (const int rank : channel.ranks) {
    key = (key ^ static_cast<std::uint64_t>(rank + 1)) * 0x100000001b3ULL;
    key ^= key >> 31;
  }
  return key;
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TaskList& tasks, TaskSockets sockets)
      : tasks_(tasks), may_lose_(sockets.size()), lost_(sockets.size()), peers_(sockets.size()) {
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      const auto rank = static_cast<int>(i);
      all_.push_back(rank);
      if (rank == tasks_.index) {
        listener_ = std::move(sockets[i]);
        continue;
      }
      peers_[i] = std::make_unique<Peer>(
          std::move(sockets[i]), rank, arrivals_,
          Peer::Handler{.message = [this, rank](std::string text) { arrive({.from = rank, .text = std::move(text)}); },
                        .abort = [this](const std::string& text) { end_with(text); },
                        .loss = [this, rank] { lose(rank); }});
    }
    is_complete_.store(true);
  }

  int rank() const override { return tasks_.index; }
  int size() const override { return static_cast<int>(peers_.size()); }
  std::string library() const override { return "none (TCP)"; }

  void post(int to, std::string text) override { peer(to).send({.kind = FrameKind::message}, std::move(text)); }

  bool poll(Message& message) override {
    const std::lock_guard lock(inbox_mutex_);
    if (inbox_.empty()) return false;
    message = std::move(inbox_.front());
    inbox_.pop_front();
    return true;
  }

  std::vector<std::string> gather(const std::string& mine) override {
    std::vector<std::shared_ptr<Receipt>> receipts(peers_.size());
    std::vector<std::shared_ptr<Sent>> sent(peers_.size());
    for (const int other : others_of(all_)) {
      receipts[index(other)] = arrivals_.expect_text({.from = other, .stream = FrameStream::gather});
      sent[index(other)] =
          peer(other).send({.kind = FrameKind::data, .stream = FrameStream::gather}, mine.data(), mine.size());
    }
    std::vector<std::string> texts(peers_.size(), mine);
    for (const int other : others_of(all_)) {
      arrivals_.wait(*receipts[index(other)]);
      texts[index(other)] = std::move(receipts[index(other)]->text);
      peer(other).wait(*sent[index(other)]);
    }
    return texts;
  }

  void all_reduce(const Channel& channel, void* data, std::int64_t count, DType dtype, Reduction reduction) override {
    const std::vector<std::int64_t> first = equal_parts(count, channel.ranks.size(), element_bytes(dtype));
    reduce_parts(channel, data, first, dtype, reduction);
    Exchange exchange(*this, channel);
    const int mine = place_in(channel);
    for (const int place : exchange.others()) {
      exchange.receive(place, at(data, first[index(place)]), length(first, place));
      exchange.send(place, at(data, first[index(mine)]), length(first, mine));
    }
    exchange.wait();
  }

  void reduce(const Channel& channel, int root, void* data, std::int64_t count, DType dtype,
              Reduction reduction) override {
    const std::vector<std::int64_t> first = equal_parts(count, channel.ranks.size(), element_bytes(dtype));
    reduce_parts(channel, data, first, dtype, reduction);
    Exchange exchange(*this, channel);
    const int mine = place_in(channel);
    if (mine != root) exchange.send(root, at(data, first[index(mine)]), length(first, mine));
    for (const int place : exchange.others()) {
      if (mine == root) exchange.receive(place, at(data, first[index(place)]), length(first, place));
    }
    exchange.wait();
  }

  void broadcast(const Channel& channel, int root, void* data, std::int64_t bytes) override {
    if (channel.ranks.size() > 2 && bytes >= kBroadcastInParts) return broadcast_in_parts(channel, root, data, bytes);
    Exchange exchange(*this, channel);
    if (place_in(channel) != root) exchange.receive(root, data, bytes);
    for (const int place : exchange.others()) {
      if (place_in(channel) == root) exchange.send(place, data, bytes);
    }
    exchange.wait();
  }

  void all_gather(const Channel& channel, const void* from, void* to, std::int64_t part_bytes,
                  std::span<const int> parts) override {
    const std::vector<std::int64_t> first = parts_of_counts(parts, part_bytes);
    Exchange exchange(*this, channel);
    const int mine = place_in(channel);
    for (const int place : exchange.others()) {
      exchange.receive(place, at(to, first[index(place)]), length(first, place));
      exchange.send(place, from, length(first, mine));
    }
    copy_bytes(at(to, first[index(mine)]), from, length(first, mine));
    exchange.wait();
  }

  void reduce_scatter(const Channel& channel, const void* from, void* to, std::span<const int> counts, DType dtype,
                      Reduction reduction) override {
    add_in_order(channel, from, parts_of_counts(counts, element_bytes(dtype)), to, dtype, reduction);
  }

  void all_to_all(const Channel& channel, const void* from, std::span<const int> send_parts, void* to,
                  std::span<const int> receive_parts, std::int64_t part_bytes) override {
    const std::vector<std::int64_t> out = parts_of_counts(send_parts, part_bytes),
                                    in = parts_of_counts(receive_parts, part_bytes);
    Exchange exchange(*this, channel);
    const int mine = place_in(channel);
    for (const int place : exchange.others()) {
      exchange.receive(place, at(to, in[index(place)]), length(in, place));
      exchange.send(place, at(from, out[index(place)]), length(out, place));
    }
    copy_bytes(at(to, in[index(mine)]), at(from, out[index(mine)]), length(in, mine));
    exchange.wait();
  }

  void send(int to, int tag, const void* data, std::int64_t bytes) override {
    peer(to).wait(*begin_frame(to, FrameStream::pair, 0, tag, data, bytes));
  }
  void receive(int from, int tag, void* data, std::int64_t bytes) override {
    arrivals_.wait(*arrivals_.expect({.from = from, .stream = FrameStream::pair, .tag = tag}, data,
                                     static_cast<std::size_t>(bytes)));
  }

  bool can_lose_ranks() const override { return true; }
  void set_expendable(const std::vector<bool>& ranks) override {
    for (std::size_t rank = 0; rank < may_lose_.size(); ++rank)
      may_lose_[rank].store(rank < ranks.size() && ranks[rank]);
  }
  bool is_lost(int rank) const override { return lost_[index(rank)].load(); }
  void drop(int rank) override {
    if (note_loss(rank)) peer(rank).shut();
  }

  std::unique_ptr<Transfer> begin_send(int to, TagChooser chooser, int tag, const void* data,
                                       std::int64_t bytes) override {
    return std::make_unique<SendTransfer>(begin_frame(to, stream_of(chooser), 0, tag, data, bytes));
  }
  std::unique_ptr<Transfer> begin_receive(int from, TagChooser chooser, int tag, void* data,
                                          std::int64_t bytes) override {
    return std::make_unique<ReceiveTransfer>(arrivals_.expect({.from = from, .stream = stream_of(chooser), .tag = tag},
                                                              data, static_cast<std::size_t>(bytes)));
  }

  [[noreturn]] void abort(int exit_code, const std::string& reason) override {
    become_last_words();
    end_job(exit_code, reason);
  }

  void finalize() override {
    for (const int other : others_of(all_)) peer(other).say_goodbye();
    for (const int other : others_of(all_)) peer(other).wait_for_goodbye();
    peers_.clear();
    listener_.close();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Frames of one step of a collective, between this rank and others of its channel.
  class Exchange {
   public:
    Exchange(TcpTransport& transport, const Channel& channel)
        : transport_(transport), channel_(channel), key_(channel_key(channel)) {
      const int mine = transport.place_in(channel);
      for (int place = 0; place < static_cast<int>(channel.ranks.size()); ++place) {
        if (place != mine) others_.push_back(place);
      }
    }
    const std::vector<int>& others() const { return others_; }  // places

    void send(int place, const void* data, std::int64_t bytes) {
      const int to = channel_.ranks[index(place)];
      sent_.emplace_back(to, transport_.begin_frame(to, FrameStream::collective, key_, 0, data, bytes));
    }
    std::shared_ptr<Receipt> receive(int place, void* data, std::int64_t bytes) {
      const ArrivalKey key{
          .from = channel_.ranks[index(place)], .stream = FrameStream::collective, .group = key_, .tag = 0};
      receipts_.push_back(transport_.arrivals_.expect(key, data, static_cast<std::size_t>(bytes)));
      return receipts_.back();
    }
    // Until all of this is sent and received.
    void wait() {
      for (const auto& receipt : receipts_) transport_.await(*receipt);
      for (const auto& [to, sent] : sent_) transport_.peer(to).wait(*sent);
    }

   private:
    TcpTransport& transport_;
    const Channel& channel_;
    const std::uint64_t key_;
    std::vector<int> others_;
    std::vector<std::shared_ptr<Receipt>> receipts_;
    std::vector<std::pair<int, std::shared_ptr<Sent>>> sent_;
  };

  static std::size_t index(int rank_or_place) { return static_cast<std::size_t>(rank_or_place); }
  static std::int64_t element_bytes(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

  Peer& peer(int rank) { return *peers_[index(rank)]; }
  int place_in(const Channel& channel) const {
    return static_cast<int>(std::lower_bound(channel.ranks.begin(), channel.ranks.end(), rank()) -
                            channel.ranks.begin());
  }
  std::vector<int> others_of(const std::vector<int>& ranks) const {
    std::vector<int> others = ranks;
    std::erase(others, rank());
    return others;
  }

  std::shared_ptr<Sent> begin_frame(int to, FrameStream stream, std::uint64_t group, int tag, const void* data,
                                    std::int64_t bytes) {
    return peer(to).send({.kind = FrameKind::data, .stream = stream, .tag = tag, .group = group}, data,
                         static_cast<std::size_t>(bytes));
  }

  // Reduces the part of each place on its rank, in place.
  void reduce_parts(const Channel& channel, void* data, const std::vector<std::int64_t>& first, DType dtype,
                    Reduction reduction) {
    const int mine = place_in(channel);
    std::vector<std::byte> sum(static_cast<std::size_t>(length(first, mine)));
    add_in_order(channel, data, first, sum.data(), dtype, reduction);
    copy_bytes(at(data, first[index(mine)]), sum.data(), length(first, mine));
  }

  // Gives each rank its part of `from`, and reduces this rank's parts of all in the order of the ranks.
  void add_in_order(const Channel& channel, const void* from, const std::vector<std::int64_t>& first, void* sum,
                    DType dtype, Reduction reduction) {
    const int mine = place_in(channel);
    const std::int64_t bytes = length(first, mine), count = bytes / element_bytes(dtype);
    Exchange exchange(*this, channel);
    std::vector<std::vector<std::byte>> parts(channel.ranks.size());
    std::vector<std::shared_ptr<Receipt>> receipts(channel.ranks.size());
    for (const int place : exchange.others()) {
      parts[index(place)].resize(static_cast<std::size_t>(bytes));
      receipts[index(place)] = exchange.receive(place, parts[index(place)].data(), bytes);
      exchange.send(place, at(from, first[index(place)]), length(first, place));
    }
    for (std::size_t place = 0; place < parts.size(); ++place) {
      if (receipts[place] != nullptr) await(*receipts[place]);
      const std::byte* part = receipts[place] != nullptr ? parts[place].data() : at(from, first[index(mine)]);
      if (place == 0) {
        copy_bytes(sum, part, bytes);
      } else {
        accumulate(dtype, reduction, sum, part, count);
      }
    }
    exchange.wait();
  }

  // The root gives each other rank a part, and these give it to one another.
  void broadcast_in_parts(const Channel& channel, int root, void* data, std::int64_t bytes) {
    const int places = static_cast<int>(channel.ranks.size()), mine = place_in(channel);
    const std::int64_t part = (bytes + places - 2) / (places - 1);
    const auto begin = [&](int place) { return std::min(bytes, part * (place < root ? place : place - 1)); };
    const auto size = [&](int place) { return std::min(part, bytes - begin(place)); };
    Exchange exchange(*this, channel);
    if (mine == root) {
      for (const int place : exchange.others()) exchange.send(place, at(data, begin(place)), size(place));
      return exchange.wait();
    }
    await(*exchange.receive(root, at(data, begin(mine)), size(mine)));
    for (const int place : exchange.others()) {
      if (place == root) continue;
      exchange.receive(place, at(data, begin(place)), size(place));
      exchange.send(place, at(data, begin(mine)), size(mine));
    }
    exchange.wait();
  }

  void arrive(Message message) {
    const std::lock_guard lock(inbox_mutex_);
    inbox_.push_back(std::move(message));
  }

  // A frame of a collective. The others may have what this rank lacks, so that none of them can go on.
  void await(const Receipt& receipt) {
    arrivals_.wait(receipt);
    if (receipt.is_lost.load()) end_because("a task was lost in the middle of a collective; the job ends");
  }

  // Returns whether the job goes on without the rank.
  bool note_loss(int rank) {
    if (!may_lose_[index(rank)].load()) return false;
    if (lost_[index(rank)].exchange(true)) return true;
    arrivals_.lose(rank);
    arrive({.from = rank, .text = "", .tells_loss = true});
    return true;
  }

  void lose(int rank) {
    if (note_loss(rank)) return;
    end_because(
        fmt::format("{} has ended before the job: it was killed, has crashed, or its network is gone; the job ends",
                    place_of_task(tasks_, rank)));
  }

  [[noreturn]] void end_because(const std::string& reason) {
    become_last_words();
    std::fputs(fmt::format("tandem: {}\n", reason).c_str(), stderr);
    end_job(kRunFailed, reason);
  }

  // Another task has ended the job.
  void end_with(const std::string& text) {
    become_last_words();
    std::fputs(fmt::format("tandem: {}\n", reason_of_abort(text)).c_str(), stderr);
    _exit(code_of_abort(text));
  }

  // Tells the others.
  [[noreturn]] void end_job(int exit_code, const std::string& reason) {
    // The threads of the connections may find losses while they are made.
    while (!is_complete_.load()) std::this_thread::yield();
    for (const int other : others_of(all_)) peer(other).send({.kind = FrameKind::abort}, abort_text(exit_code, reason));
    for (const int other : others_of(all_)) peer(other).flush(Clock::now() + kLastWords);
    _exit(exit_code);
  }

  // Only one thread ends the process; others wait for that.
  void become_last_words() {
    while (is_ending_.exchange(true)) std::this_thread::sleep_for(kLastWords);
  }

  const TaskList tasks_;
  std::vector<int> all_;  // ranks
  Socket listener_;       // keeps the port taken
  Arrivals arrivals_;
  std::mutex inbox_mutex_;  // guards inbox_
  std::deque<Message> inbox_;
  std::atomic<bool> is_complete_ = false, is_ending_ = false;
  std::vector<std::atomic<bool>> may_lose_, lost_;  // by rank
  std::vector<std::unique_ptr<Peer>> peers_;        // by rank; null: this one
};

}  // namespace

Transport& open_tcp_transport(const TaskList& tasks, double timeout_s, Socket listener) {
  // Outlives everything that may still leave the job.
  static auto* const transport = new TcpTransport(tasks, meet_tasks(tasks, timeout_s, std::move(listener)));
  return *transport;
}

}  // namespace tandem::mpi
