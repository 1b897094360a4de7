// What every engine must do alike when something goes wrong: the same kinds of failure, naming who and what.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class EveryEngineFails : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineFails, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(EveryEngineFails, NamesWhoWaitsInADeadlock) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  const auto monitor = worker.tasks().make_monitor();
                  const std::string what = "the letter of worker " + std::to_string(1 - worker.index());
                  const std::lock_guard lock(*monitor);
                  for (;;) monitor->wait(what);
                });
              }),
              testing::ThrowsMessage<DeadlockError>(AllOf(HasSubstr("worker 0 waits for the letter of worker 1"),
                                                          HasSubstr("worker 1 waits for the letter of worker 0"))));
}

TEST_P(EveryEngineFails, NamesACollectiveThatNotAllJoin) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  if (worker.index() == 1) return;
                  const Tensor tensor = worker.devices()[0]->allocate(DType::f32, {4});
                  Communicator& communicator = worker.communicator(all_devices(worker));
                  communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker, kComputeStream));
                  worker.devices()[0]->synchronize();
                });
              }),
              testing::ThrowsMessage<DeadlockError>(AllOf(HasSubstr("worker 0 waits for"), HasSubstr("all_reduce"))));
}

// One all_reduce among all devices, with this timeout.
void issue_all_reduce(Worker& worker, std::optional<double> timeout_s) {
  std::vector<Tensor> tensors;
  for (Device* device : worker.devices()) tensors.push_back(device->allocate(DType::f32, {4}));
  Communicator& communicator = worker.communicator(all_devices(worker));
  communicator.set_timeout(timeout_s);
  communicator.all_reduce(tensors, Reduction::sum, streams_of(worker, kComputeStream));
}

// Works in pieces of a twentieth of a simulated second, or a few real milliseconds, until the run is ended.
void work_forever(Worker& worker, Nanoseconds& last_ns) {
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  for (;;) {
    worker.devices()[0]->compute_stream().launch(op::host_function("work", {5e10, 0, DType::f32}, pause));
    worker.devices()[0]->synchronize();
    last_ns = worker.now();
  }
}

TEST_P(EveryEngineFails, ACollectiveMissesItsDeadlineWhenNotAllJoin) {
  const DeviceType type = GetParam().compute_devices;
  const std::string first = DeviceId{"worker", 0, type, 0}.text();
  const std::string second = DeviceId{"worker", 1, type, 0}.text();
  Nanoseconds start_ns = 0, last_ns = 0;
  const auto program = [&](Worker& worker) {
    if (worker.index() == 1) return work_forever(worker, last_ns);
    start_ns = worker.now();
    issue_all_reduce(worker, 1.0);
    worker.devices()[0]->synchronize();
  };
  EXPECT_THAT(
      ([&] { run(2, 1, program); }),
      testing::ThrowsMessage<DeadlineExceededError>(
          says(GetParam(), "all_reduce #0 (1 of 2 devices arrived; missing " + second + ") is not complete 1 s after " +
                               first + " was ready for it, its timeout (group: " + first + ", " + second + ")")));
  if (workers_here(GetParam(), 2) < 2) return;  // neither process has both of the times
  const double seconds = static_cast<double>(last_ns - start_ns) * 1e-9;
  EXPECT_GT(seconds, 0.8);
  EXPECT_LT(seconds, 5);
}

TEST_P(EveryEngineFails, AMissedDeadlineIsNoDeadlock) {
  const auto wait_for_it = [](Worker& worker) {
    if (worker.index() > 0) return;
    issue_all_reduce(worker, 0.3);
    EXPECT_THROW(worker.devices()[0]->synchronize(), DeadlineExceededError);
  };
  EXPECT_THROW(run(2, 1, wait_for_it), DeadlineExceededError) << "it stays when a program hides it";
  const auto leave_it = [](Worker& worker) {
    if (worker.index() == 0) issue_all_reduce(worker, 0.3);
  };
  EXPECT_THROW(run(2, 1, leave_it), DeadlineExceededError);
  const auto end_step = [](Worker& worker) {
    worker.begin_step(0);
    if (worker.index() == 0) issue_all_reduce(worker, 0.3);
    worker.end_step();
  };
  EXPECT_THROW(run(2, 1, end_step), DeadlineExceededError);
}

TEST_P(EveryEngineFails, ADeadlineReleasesThoseWhoWaitWithoutOne) {
  const auto program = [](Worker& worker) {
    if (worker.index() == 2) return;
    issue_all_reduce(worker, worker.index() == 0 ? std::optional(0.3) : std::nullopt);
    worker.devices()[0]->synchronize();
  };
  EXPECT_THROW(run(3, 2, program), DeadlineExceededError);
}

TEST_P(EveryEngineFails, ASendMissesItsDeadlineWithoutAReceive) {
  const auto program = [](Worker& worker) {
    if (worker.index() == 1) return;
    const Tensor tensor = worker.devices()[0]->allocate(DType::f32, {4});
    Communicator& communicator = worker.communicator(all_devices(worker));
    communicator.set_timeout(0.3);
    communicator.send(tensor, 1, worker.devices()[0]->compute_stream());
    worker.devices()[0]->synchronize();
  };
  EXPECT_THAT(([&] { run(2, 1, program); }),
              testing::ThrowsMessage<DeadlineExceededError>(
                  AllOf(HasSubstr("send and receive #0 (1 of 2 devices arrived; missing /job:worker/replica:0/task:1"),
                        HasSubstr("0.3 s"))));
}

TEST_P(EveryEngineFails, NoDeadlineIsMissedWhenAllJoinInTime) {
  const auto program = [](Worker& worker) {
    for (int i = 0; i < 3; ++i) issue_all_reduce(worker, 100.0);
    worker.devices()[0]->synchronize();
  };
  EXPECT_NO_THROW(run(2, 2, program));
  const auto lift = [](Worker& worker) {  // the deadlock is back
    issue_all_reduce(worker, 100.0);
    if (worker.index() == 0) issue_all_reduce(worker, std::nullopt);
    worker.devices()[0]->synchronize();
  };
  EXPECT_THROW(run(2, 1, lift), DeadlockError);
}

TEST_P(EveryEngineFails, RefusesCollectivesThatDiffer) {
  EXPECT_THROW(run(2, 1,
                   [](Worker& worker) {
                     const Tensor tensor = worker.devices()[0]->allocate(DType::f32, {4 + worker.index()});
                     Communicator& communicator = worker.communicator(all_devices(worker));
                     communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker, kComputeStream));
                     worker.devices()[0]->synchronize();
                   }),
               RunError);
}

TEST_P(EveryEngineFails, AnExceptionOfOneProgramEndsAll) {
  bool has_gone_on = false;
  EXPECT_THAT(([&] {
                run(2, 1, [&](Worker& worker) {
                  if (worker.index() == 1) throw std::runtime_error("worker 1 gives up");
                  const auto monitor = worker.tasks().make_monitor();
                  const std::lock_guard lock(*monitor);
                  for (;;) monitor->wait("something that never comes");
                  has_gone_on = true;
                });
              }),
              testing::ThrowsMessage<std::runtime_error>(says(GetParam(), "worker 1 gives up")));
  EXPECT_FALSE(has_gone_on);
}

TEST_P(EveryEngineFails, AnErrorInAnOpSurfacesAtSynchronize) {
  EXPECT_THAT(([&] {
                run(1, 1, [&](Worker& worker) {
                  Device& device = *worker.devices()[0];
                  device.compute_stream().launch(
                      op::host_function("explode", {}, [] { throw std::runtime_error("out of luck"); }));
                  EXPECT_THAT([&] { device.synchronize(); },
                              testing::ThrowsMessage<RunError>(AllOf(
                                  HasSubstr("explode"), HasSubstr(device.id().text()), HasSubstr("out of luck"))));
                  device.synchronize();
                });
              }),
              testing::Throws<RunError>());
}

TEST_P(EveryEngineFails, CanRunAgainAfterAFailure) {
  const auto engine = open_world(GetParam(), 1, 1);
  EXPECT_THROW(engine->run([](Worker&) { throw std::runtime_error("once"); }), std::runtime_error);
  int runs = 0;
  engine->run([&](Worker&) { ++runs; });
  EXPECT_EQ(runs, workers_here(GetParam(), 1));
}

}  // namespace
}  // namespace tandem
