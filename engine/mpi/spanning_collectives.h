// Executes the collectives of a group whose devices are in several processes. Reductions are done inside each process
// first and then among the processes. Small values travel with the votes (spanning_values.cc), larger ones by MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/mpi/messenger.h"
#include "engine/mpi/transport.h"
#include "engine/threads/collective_call.h"

namespace tandem::mpi {

class SpanningCollectives final : public threads::CollectiveExecutor {
 public:
  // `owners` are the processes of the devices; more than one.
  SpanningCollectives(Messenger& messenger, Transport& transport, const std::vector<Device*>& devices,
                      std::vector<int> owners);

  void execute(const threads::CollectiveCall& call) override;
  void abort() override {}  // calls that have begun are completed
  void note_opened(const std::shared_ptr<threads::CollectiveCall>& call) override;
  void ask_to_break(const threads::CollectiveCall& call, const std::exception_ptr& error) override;
  std::optional<std::shared_ptr<threads::CollectiveExecutor>> executor_of_pair(int from, int to) override;

 private:
  using Bytes = std::vector<std::byte>;

  SpanningCollectives(Messenger& messenger, Transport& transport, const std::vector<Device*>& devices,
                      std::vector<int> owners, std::uint64_t salt);

  CallId id_of(const threads::CollectiveCall& call) const { return {group_->hash, call.sequence()}; }
  const std::vector<int>& owners() const { return group_->owners; }
  int ranks() const { return static_cast<int>(owners().size()); }
  bool is_here(int rank) const { return owners()[static_cast<std::size_t>(rank)] == transport_.rank(); }
  int place_of(int rank) const;  // of the rank's process among those of the group

  // Whether the values are few enough to travel with the votes. Returns the same in all processes.
  bool is_small(const CollectiveSpec& spec) const;
  std::string values_given(const threads::CollectiveCall& call);
  void take_values(const threads::CollectiveCall& call, const std::vector<std::string>& values);
  Bytes sum_of(const CollectiveSpec& spec, const std::vector<std::string>& values) const;

  void execute(const threads::CollectiveCall& call, const Channel& channel);
  void all_reduce(const threads::CollectiveCall& call, const Channel& channel);
  void reduce(const threads::CollectiveCall& call, const Channel& channel);
  void broadcast(const threads::CollectiveCall& call, const Channel& channel);
  void all_gather(const threads::CollectiveCall& call, const Channel& channel);
  void reduce_scatter(const threads::CollectiveCall& call, const Channel& channel);
  void all_to_all(const threads::CollectiveCall& call, const Channel& channel);
  void send_receive(const threads::CollectiveCall& call, int tag);
  // Adds the inputs of this process's ranks, from `offset_bytes` on, to `sum`, which may be the first of them.
  void reduce_here(const threads::CollectiveCall& call, std::size_t offset_bytes, std::int64_t count, std::byte* sum);

  Messenger& messenger_;
  Transport& transport_;
  const std::vector<Device*> devices_;
  const std::shared_ptr<const SpanningGroup> group_;
  std::vector<int> order_;   // the ranks, by process and then in order: the order of their parts in MPI's buffers
  std::vector<int> counts_;  // ranks of each process
  std::vector<int> here_;    // ranks of this process
};

}  // namespace tandem::mpi
