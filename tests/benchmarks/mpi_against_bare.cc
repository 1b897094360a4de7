// The mpi engine beside bare MPI, call by call in one run: `mpirun -n 2 mpi_against_bare`. Rank 0 prints the medians.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

#include "engine/engine_info.h"
#include "engine/mpi/session.h"

namespace tandem {
namespace {

constexpr int kSamples = 41;

struct Pair {
  std::vector<double> bare_s, engine_s;
};

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Runs what all ranks begin together, and returns how long it took here.
double timed(Worker& worker, const std::function<void()>& barrier, const std::function<void()>& work) {
  barrier();
  const Nanoseconds start = worker.now();
  work();
  return static_cast<double>(worker.now() - start) * 1e-9;
}

void print_all_reduce(const Pair& pair, std::int64_t bytes) {
  const double bare = median_of(pair.bare_s), engine = median_of(pair.engine_s);
  std::printf("all_reduce of %lld bytes: MPI_Allreduce %.1f us, engine %.1f us, ratio %.3f (bare / engine)\n",
              static_cast<long long>(bytes), bare * 1e6, engine * 1e6, bare / engine);
}

struct Transferred {
  std::vector<double> push_s, pull_s;
};

void print_transferred(const Transferred& times, std::int64_t bytes) {
  const double push = median_of(times.push_s), pull = median_of(times.pull_s);
  std::printf("memory of another rank, %lld bytes: push %.1f us, pull %.1f us, both %.1f us (see mpi_put_get)\n",
              static_cast<long long>(bytes), push * 1e6, pull * 1e6, (push + pull) * 1e6);
}

class AgainstBare {
 public:
  AgainstBare(Worker& worker, mpi::Transport& transport)
      : worker_(worker), transport_(transport), stream_(&worker.devices()[0]->compute_stream()) {
    ranks_.resize(static_cast<std::size_t>(transport.size()));
    std::iota(ranks_.begin(), ranks_.end(), 0);
    std::vector<DeviceId> devices;
    for (int task = 0; task < worker.count(); ++task) {
      devices.push_back(worker.devices()[0]->id());
      devices.back().task = task;
    }
    communicator_ = &worker.communicator(devices);
  }

  Pair all_reduce(std::int64_t bytes) {
    const Tensor tensor = filled(bytes / 4);
    Pair pair;
    for (int i = 0; i < kSamples; ++i) {
      pair.bare_s.push_back(time([&] {
        transport_.all_reduce({.ranks = ranks_}, tensor.data(), tensor.element_count(), DType::f32, Reduction::maximum);
      }));
      pair.engine_s.push_back(time([&] {
        communicator_->all_reduce({&tensor, 1}, Reduction::maximum, {&stream_, 1});
        stream_->synchronize();
      }));
    }
    return pair;
  }
  // A step without work but for the smallest collective, beside that collective.
  Pair empty_step() {
    const Tensor tensor = filled(1);
    Pair pair;
    for (int i = 0; i < 10 * kSamples; ++i) {
      pair.bare_s.push_back(time([&] { barrier(); }));
      pair.engine_s.push_back(time([&] {
        worker_.begin_step(i);
        communicator_->all_reduce({&tensor, 1}, Reduction::maximum, {&stream_, 1});
        worker_.end_step();
      }));
    }
    return pair;
  }

  // Rank 0 writes to memory of rank 1 and reads it, while the program there waits.
  Transferred copies(std::int64_t bytes) {
    Transferred times;
    barrier();
    if (worker_.index() == 0) {
      const Tensor here = filled(bytes / 4);
      DeviceId other = worker_.devices()[0]->id();
      other.task = 1;
      const Tensor there = worker_.device(other).allocate(DType::f32, {bytes / 4});
      for (int i = 0; i < kSamples; ++i) {
        times.push_s.push_back(seconds_of_copy(there, here));
        times.pull_s.push_back(seconds_of_copy(here, there));
      }
    }
    meet();
    return times;
  }

 private:
  double seconds_of_copy(const Tensor& to, const Tensor& from) {
    const Nanoseconds start = worker_.now();
    stream_->copy(to, from);
    stream_->synchronize();
    return static_cast<double>(worker_.now() - start) * 1e-9;
  }
  // As barrier(), but without keeping a core busy.
  void meet() {
    const Tensor tensor = filled(1);
    communicator_->all_reduce({&tensor, 1}, Reduction::maximum, {&stream_, 1});
    stream_->synchronize();
  }
  Tensor filled(std::int64_t count) {
    Tensor tensor = worker_.devices()[0]->allocate(DType::f32, {count});
    stream_->launch(op::fill(tensor, 1));
    stream_->synchronize();
    return tensor;
  }
  void barrier() {
    float nothing = 0;
    transport_.all_reduce({.ranks = ranks_}, &nothing, 1, DType::f32, Reduction::maximum);
  }
  double time(const std::function<void()>& work) {
    return timed(
        worker_, [this] { barrier(); }, work);
  }

  Worker& worker_;
  mpi::Transport& transport_;
  Stream* stream_;
  Communicator* communicator_ = nullptr;
  std::vector<int> ranks_;
};

int compare_with_bare() {
  mpi::Session* const session = mpi::Session::join();
  if (session == nullptr) {
    std::fputs("launch several ranks: mpirun -n 2 mpi_against_bare\n", stderr);
    return 2;
  }
  EngineOptions options;
  options.workers.clear();
  for (int task = 0; task < session->rank().count; ++task) options.workers.push_back({.task = task});
  open_engine("mpi", std::move(options))->run([&](Worker& worker) {
    AgainstBare compared(worker, session->transport());
    for (const std::int64_t bytes : {std::int64_t{4}, std::int64_t{1} << 20, std::int64_t{64'000'000}}) {
      const Pair pair = compared.all_reduce(bytes);
      if (worker.index() == 0) print_all_reduce(pair, bytes);
    }
    const Transferred times = compared.copies(10'000'000);
    if (worker.index() == 0) print_transferred(times, 10'000'000);
    const Pair steps = compared.empty_step();
    if (worker.index() > 0) return;
    const double bare = median_of(steps.bare_s), engine = median_of(steps.engine_s);
    std::printf("empty step: %.1f us, of which the bare collective %.1f us, beyond it %.1f us\n", engine * 1e6,
                bare * 1e6, (engine - bare) * 1e6);
  });
  return 0;
}

}  // namespace
}  // namespace tandem

int main() {
  return tandem::compare_with_bare();
}
