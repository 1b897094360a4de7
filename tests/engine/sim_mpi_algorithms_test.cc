// The schedules of MPI's algorithms: what every device has at the end, and what they cost.
#include "engine/sim/collectives/mpi_algorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/engine/sim_support.h"

namespace tandem::sim {
namespace {

std::string chosen(CollectiveKind kind, int devices, double bytes) {
  return std::string(choose_mpi_algorithm({kind, devices, bytes, 0})->name());
}

TEST(MpiAlgorithms, AreChosenBySize) {
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, 8, 2048), "recursive doubling");
  EXPECT_EQ(chosen(CollectiveKind::all_reduce, 8, 2049), "Rabenseifner");
  EXPECT_EQ(chosen(CollectiveKind::reduce, 8, 2048), "binomial tree");
  EXPECT_EQ(chosen(CollectiveKind::reduce, 8, 1e6), "Rabenseifner");
  EXPECT_EQ(chosen(CollectiveKind::broadcast, 8, 12287), "binomial tree");
  EXPECT_EQ(chosen(CollectiveKind::broadcast, 7, 1e9), "binomial tree");
  EXPECT_EQ(chosen(CollectiveKind::broadcast, 8, 12288), "scatter and all-gather");
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 8, 524287), "recursive doubling");
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 6, 81919), "Bruck");
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 6, 81920), "ring");
  EXPECT_EQ(chosen(CollectiveKind::all_gather, 8, 524288), "ring");
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, 8, 524287), "recursive halving");
  EXPECT_EQ(chosen(CollectiveKind::reduce_scatter, 8, 524288), "pairwise exchange");
  EXPECT_EQ(chosen(CollectiveKind::all_to_all, 8, 2048), "Bruck");
  EXPECT_EQ(chosen(CollectiveKind::all_to_all, 8, 2049), "pairwise exchange");
  EXPECT_EQ(chosen(CollectiveKind::all_to_all, 4, 8), "pairwise exchange");
}

// Follows who has heard from whom, step by step.
std::vector<std::set<int>> heard(const Schedule& schedule, int devices) {
  std::vector<std::set<int>> from(static_cast<std::size_t>(devices));
  for (int i = 0; i < devices; ++i) from[static_cast<std::size_t>(i)] = {i};
  for (int step = 0; step < schedule.steps; ++step) {
    std::vector<Transfer> transfers;
    schedule.transfers_of_step(step, transfers);
    const auto before = from;
    for (const Transfer& transfer : transfers) {
      const auto& more = before[static_cast<std::size_t>(transfer.from)];
      from[static_cast<std::size_t>(transfer.to)].insert(more.begin(), more.end());
    }
  }
  return from;
}

TEST(MpiAlgorithms, LetEveryDeviceHearFromAll) {
  for (const int devices : {2, 3, 4, 5, 7, 8, 13, 16}) {
    for (const double bytes : {64.0, 1e5, 1e7}) {
      for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                              CollectiveKind::all_to_all}) {
        const auto algorithm = choose_mpi_algorithm({kind, devices, bytes, 0});
        for (const auto& from : heard(algorithm->plan({kind, devices, bytes, 0}), devices)) {
          EXPECT_EQ(from.size(), static_cast<std::size_t>(devices))
              << algorithm->name() << " of " << name_of(kind) << " on " << devices;
        }
      }
    }
  }
}

TEST(MpiAlgorithms, LeadFromAndToTheRoot) {
  for (const int devices : {2, 3, 5, 8, 12}) {
    for (const double bytes : {64.0, 1e6}) {
      for (int root = 0; root < devices; root += 2) {
        const CollectiveShape down{CollectiveKind::broadcast, devices, bytes, root};
        for (const auto& from : heard(choose_mpi_algorithm(down)->plan(down), devices)) {
          EXPECT_EQ(from.count(root), 1U);
        }
        const CollectiveShape up{CollectiveKind::reduce, devices, bytes, root};
        const auto found = heard(choose_mpi_algorithm(up)->plan(up), devices);
        EXPECT_EQ(found[static_cast<std::size_t>(root)].size(), static_cast<std::size_t>(devices));
      }
    }
  }
}

double bytes_out_of(const Schedule& schedule, int device) {
  double bytes = 0;
  for (int step = 0; step < schedule.steps; ++step) {
    std::vector<Transfer> transfers;
    schedule.transfers_of_step(step, transfers);
    for (const Transfer& transfer : transfers) bytes += transfer.from == device ? transfer.bytes : 0;
  }
  return bytes;
}

TEST(MpiAlgorithms, MoveAsManyBytesAsTheirAuthorsSay) {
  const Schedule doubling = RecursiveDoubling().plan({CollectiveKind::all_reduce, 8, 1024, 0});
  EXPECT_EQ(doubling.steps, 3);
  EXPECT_DOUBLE_EQ(bytes_out_of(doubling, 0), 3 * 1024);
  const Schedule halving = RecursiveHalving("Rabenseifner").plan({CollectiveKind::all_reduce, 8, 8e6, 0});
  EXPECT_EQ(halving.steps, 6);
  EXPECT_DOUBLE_EQ(bytes_out_of(halving, 5), 2 * 7e6);
  EXPECT_EQ(RecursiveDoubling().plan({CollectiveKind::all_reduce, 6, 8, 0}).steps, 4) << "two more for the odd ones";
  const Schedule bruck = BruckAlgorithm().plan({CollectiveKind::all_gather, 5, 500, 0});
  EXPECT_EQ(bruck.steps, 3);
  EXPECT_DOUBLE_EQ(bytes_out_of(bruck, 3), 400);
  double flows = 0;
  for (const Transfer& flow : halving.flows) flows += flow.bytes;
  EXPECT_DOUBLE_EQ(flows, 8 * 2 * 7e6) << "fluid: as many";
}

// Hosts on a star of links: 2 links' latency a step.
Record all_reduce_of_hosts(int hosts, std::int64_t bytes, CollectiveFidelity fidelity, bool in_turn = false) {
  StarOptions star;
  star.workers = hosts;
  EngineOptions options;
  const std::shared_ptr<Topology> topology = make_star(star);
  topology->facts().exchanges_in_turn = in_turn;
  options.topology = topology;
  options.collectives = fidelity;
  options.workers.clear();
  std::vector<DeviceId> ids;
  for (int task = 0; task < hosts; ++task) {
    options.workers.push_back({"worker", task, task, DeviceType::cpu, 1});
    ids.push_back({"worker", task, DeviceType::cpu, 0});
  }
  const Timeline timeline = simulate(options, [&](Worker& worker) {
    const std::vector<Tensor> buffers = {worker.devices()[0]->allocate(DType::u8, {bytes})};
    const std::vector<Stream*> streams = {&worker.devices()[0]->stream(kCommunicationStream)};
    worker.communicator(ids).all_reduce(buffers, Reduction::sum, streams);
  });
  return records_of(timeline, RecordKind::collective).front();
}

TEST(MpiAlgorithms, TakeTheTimeOfTheirFormulas) {
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    const Record small = all_reduce_of_hosts(8, 1000, fidelity);
    EXPECT_EQ(small.algorithm, "recursive doubling");
    EXPECT_NEAR(static_cast<double>(duration_ns(small)), 1e9 * 3 * (2 * kLinkLatencyS + 1000 / kLinkBytesPerS), 2);
    const Record large = all_reduce_of_hosts(8, 8'000'000, fidelity);
    EXPECT_EQ(large.algorithm, "Rabenseifner");
    EXPECT_NEAR(static_cast<double>(duration_ns(large)), 1e9 * (6 * 2 * kLinkLatencyS + 14e6 / kLinkBytesPerS), 2);
    const Record in_turn = all_reduce_of_hosts(8, 8'000'000, fidelity, true);
    EXPECT_NEAR(static_cast<double>(duration_ns(in_turn)), 1e9 * (6 * 2 * kLinkLatencyS + 28e6 / kLinkBytesPerS), 2)
        << "every step is one of exchanges";
  }
}

}  // namespace
}  // namespace tandem::sim
