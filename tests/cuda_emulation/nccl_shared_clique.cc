#include "tests/cuda_emulation/nccl_shared_clique.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace tandem::emulation {
namespace {

// The part of a contribution that must be equal on all ranks.
struct Heading {
  Collective kind;
  std::uint64_t count;
  ncclDataType_t type;
  ncclRedOp_t operation;
  int root;
};

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) fail("no room for a file");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

template <typename IsOver>
void poll_until(IsOver&& is_over) {
  while (!is_over()) usleep(50);
}

}  // namespace

// Zero when the file is made.
struct SharedClique::Counts {
  std::atomic<int> joined, aborted;
  std::atomic<int> gpus[kMostRanks];                          // GPU + 1
  std::atomic<std::uint64_t> calls[kMostRanks];               // that a rank has contributed to
  std::atomic<std::uint64_t> sent[kMostRanks * kMostRanks];   // messages, by sender and receiver
  std::atomic<std::uint64_t> taken[kMostRanks * kMostRanks];  // of these

  static std::size_t pair(int from, int to) { return static_cast<std::size_t>(from * kMostRanks + to); }
};

SharedClique::SharedClique(std::string path, int ranks)
    : path_(std::move(path)), ranks_(ranks), calls_(static_cast<std::size_t>(ranks)) {
  if (ranks > kMostRanks) fail("too many ranks of several processes");
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Counts)) != 0) fail("no file for a communicator of several processes");
  void* memory = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) fail("no memory for a communicator of several processes");
  counts_ = static_cast<Counts*>(memory);
}

SharedClique::~SharedClique() {
  munmap(counts_, sizeof(Counts));
}

void SharedClique::join(int rank, int gpu) {
  counts_->gpus[rank] = gpu + 1;
  ++counts_->joined;
}

ncclResult_t SharedClique::wait_for_all(const std::atomic<bool>& is_aborted, std::string& message) {
  poll_until([&] { return counts_->joined == ranks_ || is_aborted; });
  if (is_aborted) return ncclInternalError;
  std::vector<int> gpus;
  for (int rank = 0; rank < ranks_; ++rank) gpus.push_back(counts_->gpus[rank]);
  return check_gpus(gpus, message);
}

void SharedClique::abort() {
  ++counts_->aborted;
}

bool SharedClique::has_ended() {
  return counts_->aborted == ranks_;
}

std::string SharedClique::file_of_call(int rank, std::uint64_t number) const {
  return path_ + ".call." + std::to_string(rank) + "." + std::to_string(number);
}

std::string SharedClique::file_of_message(int from, int to, std::uint64_t number) const {
  return path_ + ".message." + std::to_string(from) + "." + std::to_string(to) + "." + std::to_string(number);
}

std::size_t SharedClique::input_bytes(const Contribution& contribution, int rank) const {
  const std::size_t bytes = contribution.count * size_of(contribution.type);
  if (contribution.kind == Collective::broadcast) return rank == contribution.root ? bytes : 0;
  return contribution.kind == Collective::reduce_scatter ? bytes * static_cast<std::size_t>(ranks_) : bytes;
}

std::size_t SharedClique::output_bytes(const Contribution& contribution) const {
  const std::size_t bytes = contribution.count * size_of(contribution.type);
  return contribution.kind == Collective::all_gather ? bytes * static_cast<std::size_t>(ranks_) : bytes;
}

// A file is removed when its rank has seen that all have gone on to a later call.
bool SharedClique::meet(int rank, const Contribution& mine) {
  const std::uint64_t number = calls_[static_cast<std::size_t>(rank)]++;
  const Heading heading{mine.kind, mine.count, mine.type, mine.operation, mine.root};
  std::string bytes(reinterpret_cast<const char*>(&heading), sizeof(heading));
  if (const std::size_t size = input_bytes(mine, rank); size > 0) {
    bytes.append(static_cast<const char*>(mine.input), size);
  }
  write_file(file_of_call(rank, number), bytes);
  counts_->calls[rank] = number + 1;
  const auto have_all = [&] {
    for (int other = 0; other < ranks_; ++other) {
      if (counts_->calls[other] <= number) return false;
    }
    return true;
  };
  poll_until([&] { return have_all() || has_ended(); });
  if (!have_all()) return false;
  complete(rank, mine, number);
  if (number > 0) std::remove(file_of_call(rank, number - 1).c_str());
  return true;
}

// Every rank does the arithmetic of all, and keeps what is its own.
void SharedClique::complete(int rank, const Contribution& mine, std::uint64_t number) const {
  std::vector<std::string> files;
  for (int other = 0; other < ranks_; ++other) files.push_back(read_file(file_of_call(other, number)));
  std::vector<Contribution> all;
  std::vector<std::string> scratch(files.size(), std::string(output_bytes(mine), '\0'));
  for (std::size_t other = 0; other < files.size(); ++other) {
    Heading heading{};
    std::copy_n(files[other].data(), sizeof(heading), reinterpret_cast<char*>(&heading));
    const bool is_mine = static_cast<int>(other) == rank;
    all.push_back({heading.kind, files[other].data() + sizeof(heading), is_mine ? mine.output : scratch[other].data(),
                   heading.count, heading.type, heading.operation, heading.root});
    if (!all.back().agrees_with(mine)) fail("ranks call different collectives");
  }
  execute(all);
}

// All is posted before anything is waited for, as NCCL does within a group.
bool SharedClique::exchange(int rank, const std::vector<Message>& mine) {
  std::vector<std::pair<std::size_t, std::uint64_t>> sent;
  for (const Message& message : mine) {
    if (!message.is_send) continue;
    const std::size_t pair = Counts::pair(rank, message.peer);
    const std::uint64_t number = counts_->sent[pair];
    write_file(file_of_message(rank, message.peer, number),
               std::string(static_cast<const char*>(message.at), message.bytes));
    counts_->sent[pair] = number + 1;
    sent.emplace_back(pair, number);
  }
  for (const Message& message : mine) {
    if (message.is_send) continue;
    const std::size_t pair = Counts::pair(message.peer, rank);
    const std::uint64_t number = counts_->taken[pair];
    poll_until([&] { return counts_->sent[pair] > number || has_ended(); });
    if (counts_->sent[pair] <= number) return false;
    const std::string path = file_of_message(message.peer, rank, number);
    const std::string bytes = read_file(path);
    if (bytes.size() != message.bytes) fail("a send and its receive differ in size");
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(message.at));
    std::remove(path.c_str());
    counts_->taken[pair] = number + 1;
  }
  for (const auto& [pair, number] : sent) {
    poll_until([&, pair = pair, number = number] { return counts_->taken[pair] > number || has_ended(); });
  }
  return !has_ended();
}

}  // namespace tandem::emulation
