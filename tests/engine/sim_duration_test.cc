// Times that no record can hold end the run with a message, whatever takes them.
#include <limits>

#include "tests/engine/sim_support.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(SimDuration, OpsAreRefusedByName) {
  for (const double flops : {kInfinity, std::numeric_limits<double>::quiet_NaN(), 1e30}) {
    EXPECT_THAT(
        [&] {
          simulate(gpu_workers(make_star(), 1),
                   [&](Worker& worker) { worker.devices()[0]->compute_stream().launch(cost_only(flops)); });
        },
        ThrowsMessage<ImpossibleError>(HasSubstr("op 'work' on /job:worker/replica:0/task:0/device:GPU:0 would take ")))
        << flops;
  }
}

TEST(SimDuration, OpsThatAreTooLongTogetherAreNamed) {
  EXPECT_THAT(
      [] {
        simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
          Stream& stream = worker.devices()[0]->compute_stream();
          for (int i = 0; i < 3; ++i) stream.launch(cost_only(4e9 * 1e12));
          stream.synchronize();
        });
      },
      ThrowsMessage<ImpossibleError>(
          HasSubstr("the simulated time passes 292 years, the most that records hold: a figure of the topology or a "
                    "size of the job is far from what it should be; stream 0 of")));
}

TEST(SimDuration, CopiesAndLatenciesEndTheRun) {
  StarOptions slow;
  slow.bytes_per_s = 1e-9;
  StarOptions late;
  late.latency_s = kInfinity;
  StarOptions never;
  never.gpu.synchronize_s = vendor(kInfinity);
  for (const StarOptions& star : {slow, late, never}) {
    EXPECT_THROW(simulate(gpu_workers(make_star(star), 1),
                          [](Worker& worker) {
                            Device& gpu = *worker.devices()[0];
                            Tensor here = gpu.allocate(DType::u8, {1000});
                            Tensor host = worker.cpu().allocate(DType::u8, {1000});
                            gpu.compute_stream().copy(host, here);
                            gpu.compute_stream().synchronize();
                          }),
                 ImpossibleError);
  }
}

TEST(SimDuration, ACenturyIsNotTooLong) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.launch(cost_only(3e9 * 1e12));
    stream.synchronize();
  });
  EXPECT_EQ(duration_ns(records_of(timeline, RecordKind::op).front()), 3'000'000'000'000'000'000);
}

}  // namespace
}  // namespace tandem
