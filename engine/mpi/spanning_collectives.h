// Executes the collectives of a group whose devices are in several processes. Reductions are done inside each process
// first and then among the processes. Small values travel with the votes (spanning_values.cc), larger ones by MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/mpi/host_call.h"
#include "engine/mpi/transport/transport.h"
#include "engine/mpi/voted_collectives.h"

namespace tandem::mpi {

class SpanningCollectives final : public VotedCollectives {
 public:
  // `owners` are the processes of the devices; more than one. `machine` is null where the operands are in host memory.
  SpanningCollectives(Messenger& messenger, Transport& transport, const std::vector<Device*>& devices,
                      std::vector<int> owners, threads::ProcessMachine* machine = nullptr);

  void execute(const threads::CollectiveCall& call) override;
  void abort() override {}  // calls that have begun are completed
  std::optional<std::shared_ptr<threads::CollectiveExecutor>> executor_of_pair(int from, int to) override;

 private:
  using Bytes = std::vector<std::byte>;

  SpanningCollectives(Messenger& messenger, Transport& transport, const std::vector<Device*>& devices,
                      std::vector<int> owners, threads::ProcessMachine* machine, std::uint64_t salt);

  int place_of(int rank) const;  // of the rank's process among those of the group

  // Whether the values are few enough to travel with the votes. Returns the same in all processes.
  bool is_small(const CollectiveSpec& spec) const;
  std::string values_given(const HostCall& call);
  void take_values(const HostCall& call, const std::vector<std::string>& values);
  Bytes sum_of(const CollectiveSpec& spec, const std::vector<std::string>& values) const;

  void execute_by_mpi(const HostCall& call, const Channel& channel);
  void all_reduce(const HostCall& call, const Channel& channel);
  void reduce(const HostCall& call, const Channel& channel);
  void broadcast(const HostCall& call, const Channel& channel);
  void all_gather(const HostCall& call, const Channel& channel);
  void reduce_scatter(const HostCall& call, const Channel& channel);
  void all_to_all(const HostCall& call, const Channel& channel);
  void send_receive(const HostCall& call, int tag);
  // Adds the inputs of this process's ranks, from `offset_bytes` on, to `sum`, which may be the first of them.
  void reduce_here(const HostCall& call, std::size_t offset_bytes, std::int64_t count, std::byte* sum);

  Transport& transport_;
  threads::ProcessMachine* const machine_;
  threads::HostStaging* const staging_;
  LocalPairs local_pairs_;
  std::vector<int> order_;   // the ranks, by process and then in order: the order of their parts in MPI's buffers
  std::vector<int> counts_;  // ranks of each process
  std::vector<int> here_;    // ranks of this process
};

}  // namespace tandem::mpi
