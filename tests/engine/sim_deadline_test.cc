// Timeouts of simulated collectives: kept to the nanosecond, and without any trace where none expires.
#include <optional>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kElements = 25'000'000;  // 0.1 GB: 10 ms of each of the star's links, for two devices

void all_reduce(Worker& worker, std::optional<double> timeout_s) {
  const Tensor tensor = worker.devices()[0]->allocate(DType::f32, {kElements});
  Communicator& communicator = worker.communicator(gpus_of(worker.count()));
  communicator.set_timeout(timeout_s);
  Stream* stream = &worker.devices()[0]->compute_stream();
  communicator.all_reduce({&tensor, 1}, Reduction::sum, {&stream, 1});
}

void exchange(Worker& worker, std::optional<double> timeout_s) {
  const Tensor tensor = worker.devices()[0]->allocate(DType::f32, {1000});
  Communicator& communicator = worker.communicator(gpus_of(worker.count()));
  communicator.set_timeout(timeout_s);
  Stream& stream = worker.devices()[0]->compute_stream();
  if (worker.index() == 0) communicator.send(tensor, 1, stream);
  if (worker.index() == 1) communicator.receive(tensor, 0, stream);
}

std::string with_timeout(std::optional<double> timeout_s, std::optional<std::uint64_t> seed) {
  EngineOptions options = gpu_workers(make_star({.workers = 3}), 3);
  options.schedule_seed = seed;
  return text_of(simulate(options, [&](Worker& worker) {
    worker.begin_step(0);
    for (int i = 0; i < 3; ++i) {
      worker.devices()[0]->compute_stream().launch(cost_only(1e10 * worker.index()));
      all_reduce(worker, timeout_s);
      exchange(worker, timeout_s);
    }
    worker.end_step();
  }));
}

TEST(SimDeadline, LeavesNoTraceWhereItIsNotReached) {
  EXPECT_THAT(with_timeout(std::nullopt, std::nullopt), HasSubstr("receive"));
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1), std::optional<std::uint64_t>(2)}) {
    EXPECT_EQ(with_timeout(0.2, seed), with_timeout(std::nullopt, seed));
    EXPECT_EQ(with_timeout(1e300, seed), with_timeout(std::nullopt, seed));
  }
}

// Two ranks take 2 (n-1)/n bytes / bandwidth = 10 ms and twice the latency.
TEST(SimDeadline, IsOfTheWholeCollective) {
  const auto run = [](double timeout_s) {
    simulate(gpu_workers(make_star(), 2), [&](Worker& worker) { all_reduce(worker, timeout_s); });
  };
  EXPECT_NO_THROW(run(0.0101));
  EXPECT_THAT(([&] { run(0.0099); }), testing::ThrowsMessage<DeadlineExceededError>(HasSubstr(
                                          "all_reduce #0 (2 of 2 devices arrived) is not complete 0.0099 s")));
}

TEST(SimDeadline, BeginsWhenTheStreamIsReadyForTheCall) {
  const auto run = [](double late_flops) {
    simulate(gpu_workers(make_star(), 2), [&](Worker& worker) {
      worker.devices()[0]->compute_stream().launch(cost_only(worker.index() == 0 ? 1e12 : 1e12 + late_flops));
      all_reduce(worker, worker.index() == 0 ? std::optional(0.02) : std::nullopt);
    });
  };
  EXPECT_NO_THROW(run(0.009e12));
  EXPECT_THROW(run(0.011e12), DeadlineExceededError);
}

TEST(SimDeadline, TheEarliestCounts) {
  EXPECT_THAT(([] {
                simulate(gpu_workers(make_star({.workers = 3}), 3), [](Worker& worker) {
                  if (worker.index() < 2) all_reduce(worker, worker.index() == 0 ? 9 : 5);
                });
              }),
              testing::ThrowsMessage<DeadlineExceededError>(HasSubstr("5 s after " + gpu_of(1).text() + " was ready")));
}

TEST(SimDeadline, PendingOnesDoNotReachTheNextRun) {
  const auto program = [](Worker& worker) {
    if (worker.index() == 0) all_reduce(worker, 1);
    if (worker.index() == 1) throw std::runtime_error("gives up");
  };
  EXPECT_THROW(simulate(gpu_workers(make_star(), 2), program), std::runtime_error);
  EXPECT_NO_THROW(simulate(gpu_workers(make_star(), 2), [](Worker& worker) { all_reduce(worker, 1); }));
}

}  // namespace
}  // namespace tandem
