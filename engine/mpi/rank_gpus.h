// Which GPU each logical device of a job is on, as every process of it knows.
//
// A process uses the GPUs it can see. The processes of a host that see the same ones divide them among themselves: the
// first begins at GPU 0, the next where that one's logical devices end, and so on, from the beginning again where there
// are no more.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/device.h"
#include "engine/worker.h"

namespace tandem::mpi {

// How a group that spans processes communicates.
enum class SpanningPath : std::uint8_t {
  host,     // its devices are CPUs: by MPI
  devices,  // each is on a GPU of its own, which no other process uses: by NCCL
  staged    // some share a GPU, which NCCL does not allow, or do so with another process: by MPI, through host memory
};

// A process of the job: its host, and the names of the GPUs that it can use, at least one.
struct ProcessGpus {
  std::string host;
  std::vector<std::string> gpus;
};

class RankGpus {
 public:
  // `owners` are the processes of the workers.
  RankGpus(std::vector<ProcessGpus> processes, std::vector<WorkerSpec> workers, std::vector<int> owners)
      : processes_(std::move(processes)), workers_(std::move(workers)), owners_(std::move(owners)) {}

  // Returns the position, among the process's GPUs, of the one that logical device 0 of each of its workers is on.
  int first_gpu(int process) const;
  // Throws Error for a group of CPUs and GPUs.
  SpanningPath path_of(const std::vector<Device*>& devices) const;
  // Describes the path for Timeline::settings: "NCCL on 8 GPUs of 2 processes".
  std::string path_text(const std::vector<Device*>& devices) const;
  // Returns a caveat if logical devices share GPUs, for Timeline::notes.
  std::vector<std::string> notes() const;

 private:
  int devices_of(int process) const;  // the most that a worker of the process has
  std::string place_of(int worker, int device) const;
  // Returns the number of processes that have logical devices on a GPU.
  std::size_t users_of(const std::string& place) const;
  std::vector<std::string> places_of(const std::vector<Device*>& devices) const;

  const std::vector<ProcessGpus> processes_;
  const std::vector<WorkerSpec> workers_;
  const std::vector<int> owners_;
};

}  // namespace tandem::mpi
