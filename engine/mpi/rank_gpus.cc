#include "engine/mpi/rank_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace tandem::mpi {

int RankGpus::devices_of(int process) const {
  int most = 0;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const WorkerSpec& spec = workers_[worker];
    if (owners_[worker] == process && spec.device_type == DeviceType::gpu) most = std::max(most, spec.device_count);
  }
  return most;
}

int RankGpus::first_gpu(int process) const {
  const ProcessGpus& mine = processes_[static_cast<std::size_t>(process)];
  int first = 0;
  for (int other = 0; other < process; ++other) {
    const ProcessGpus& theirs = processes_[static_cast<std::size_t>(other)];
    if (theirs.host == mine.host && theirs.gpus == mine.gpus) first += devices_of(other);
  }
  return first % static_cast<int>(mine.gpus.size());
}

std::string RankGpus::place_of(int worker, int device) const {
  const int process = owners_[static_cast<std::size_t>(worker)];
  const ProcessGpus& of_process = processes_[static_cast<std::size_t>(process)];
  const auto gpu = static_cast<std::size_t>(first_gpu(process) + device) % of_process.gpus.size();
  return of_process.host + ' ' + of_process.gpus[gpu];
}

std::vector<std::string> RankGpus::places_of(const std::vector<Device*>& devices) const {
  std::vector<std::string> places;
  for (const Device* device : devices) {
    if (device->id().type == DeviceType::gpu) places.push_back(place_of(device->worker(), device->id().index));
  }
  return places;
}

std::size_t RankGpus::users_of(const std::string& place) const {
  std::set<int> processes;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].device_type != DeviceType::gpu) continue;
    for (int device = 0; device < workers_[worker].device_count; ++device) {
      if (place_of(static_cast<int>(worker), device) == place) processes.insert(owners_[worker]);
    }
  }
  return processes.size();
}

// The kernels of two processes on one GPU have no common order.
SpanningPath RankGpus::path_of(const std::vector<Device*>& devices) const {
  const std::vector<std::string> places = places_of(devices);
  if (places.empty()) return SpanningPath::host;
  if (places.size() < devices.size()) {
    std::vector<std::string> names;
    for (const Device* device : devices) names.push_back(device->id().text());
    throw Error(fmt::format("there is no communicator of CPUs and GPUs together: {}", fmt::join(names, ", ")));
  }
  const std::set<std::string> distinct(places.begin(), places.end());
  const bool are_shared =
      std::any_of(distinct.begin(), distinct.end(), [this](const std::string& place) { return users_of(place) > 1; });
  return distinct.size() == places.size() && !are_shared ? SpanningPath::devices : SpanningPath::staged;
}

std::string RankGpus::path_text(const std::vector<Device*>& devices) const {
  const std::vector<std::string> places = places_of(devices);
  const std::size_t gpus = std::set<std::string>(places.begin(), places.end()).size();
  std::set<int> processes;
  for (const Device* device : devices) processes.insert(owners_[static_cast<std::size_t>(device->worker())]);
  if (path_of(devices) == SpanningPath::devices) {
    return fmt::format("NCCL on {} GPUs of {} processes", gpus, processes.size());
  }
  return fmt::format("MPI through host memory ({} logical devices of {} processes on {} GPU{})", places.size(),
                     processes.size(), gpus, gpus == 1 ? "" : "s");
}

std::vector<std::string> RankGpus::notes() const {
  std::map<std::string, int> devices;  // on each GPU
  int all = 0, most = 0;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    if (workers_[worker].device_type != DeviceType::gpu) continue;
    for (int device = 0; device < workers_[worker].device_count; ++device, ++all) {
      most = std::max(most, ++devices[place_of(static_cast<int>(worker), device)]);
    }
  }
  if (most < 2) return {};
  return {fmt::format("shared: {} logical devices are on {} GPU{}, up to {} on each; times are not those of {} GPUs",
                      all, devices.size(), devices.size() == 1 ? "" : "s", most, all)};
}

}  // namespace tandem::mpi
