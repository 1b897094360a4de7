#include "tests/benchmarks/cpu_all_reduce.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "engine/engine.h"

namespace tandem {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

double cpu_all_reduce_busbw(std::int64_t bytes, Timeline* timeline) {
  constexpr int kWarmUp = 2, kCalls = 5;
  EngineOptions options;
  options.workers = {{.device_count = 2}};
  Nanoseconds elapsed_ns = 0;
  Timeline records = open_engine("cpu", options)->run([&](Worker& worker) {
    std::vector<DeviceId> ids;
    std::vector<Tensor> buffers;
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) {
      ids.push_back(device->id());
      buffers.push_back(device->allocate(DType::f32, {bytes / 4}));
      streams.push_back(&device->stream(kCommunicationStream));
      streams.back()->launch(op::fill(buffers.back(), 1));
    }
    Communicator& communicator = worker.communicator(ids);
    const auto call = [&](int times) {
      for (int i = 0; i < times; ++i) communicator.all_reduce(buffers, Reduction::sum, streams);
      for (Stream* stream : streams) stream->synchronize();
    };
    call(kWarmUp);
    const Nanoseconds start = worker.now();
    call(kCalls);
    elapsed_ns = worker.now() - start;
  });
  if (timeline != nullptr) *timeline = std::move(records);
  return static_cast<double>(bytes) * kCalls / (static_cast<double>(elapsed_ns) * 1e-9) *
         bus_bandwidth_factor(CollectiveKind::all_reduce, 2);
}

std::optional<double> mpi_all_reduce_busbw(std::int64_t bytes, std::string& reason) {
#ifdef TANDEM_MPI_ALL_REDUCE
  const std::string command = std::string(TANDEM_MPIEXEC) + " --allow-run-as-root --oversubscribe -n 2 " +
                              TANDEM_MPI_ALL_REDUCE + " " + std::to_string(bytes);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    reason = "cannot start " + command;
    return {};
  }
  std::string output;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  const double busbw = std::strtod(output.c_str(), nullptr);
  if (pclose(pipe) == 0 && busbw > 0) return busbw;
  reason = "'" + command + "' failed: " + output;
#else
  static_cast<void>(bytes);
  reason = "MPI was not found when this was configured";
#endif
  return {};
}

double AllReduceComparison::cpu_median() const {
  return median(cpu_busbw);
}

double AllReduceComparison::mpi_median() const {
  return median(mpi_busbw);
}

std::optional<AllReduceComparison> compare_all_reduce(std::int64_t bytes, int samples, std::string& reason) {
  AllReduceComparison comparison;
  for (int i = 0; i < samples; ++i) {
    const std::optional<double> mpi = mpi_all_reduce_busbw(bytes, reason);
    if (!mpi) return {};
    comparison.mpi_busbw.push_back(*mpi);
    comparison.cpu_busbw.push_back(cpu_all_reduce_busbw(bytes));
  }
  return comparison;
}

}  // namespace tandem
