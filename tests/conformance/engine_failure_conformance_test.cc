// What every engine must do alike when something goes wrong: the same kinds of failure, naming who and what.
#include <stdexcept>

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
                  const auto monitor = worker.make_monitor();
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
                  const auto monitor = worker.make_monitor();
                  const std::lock_guard lock(*monitor);
                  for (;;) monitor->wait("something that never comes");
                  has_gone_on = true;
                });
              }),
              testing::ThrowsMessage<std::runtime_error>("worker 1 gives up"));
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
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace tandem
