#include "engine/launched_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "topologies/base/error.h"

namespace tandem {
namespace {

struct Launcher {
  const char* index;
  const char* count;
  const char* on_host;
};

// Slurm's batch scripts have SLURM_NTASKS, but only the tasks of srun have SLURM_STEP_NUM_TASKS.
constexpr std::array<Launcher, 4> kLaunchers{
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"}}};

int number_of(const char* name, const char* text) {
  int number = -1;
  const char* end = text + std::strlen(text);
  const auto result = std::from_chars(text, end, number);
  if (result.ec != std::errc{} || result.ptr != end || number < 0) {
    throw RunError(fmt::format("{} is '{}'; expected a whole number", name, text));
  }
  return number;
}

std::atomic<LaunchedJob*> the_job{nullptr};
std::atomic<int> the_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler sets it");

TaskList& tasks() {
  static TaskList list;
  return list;
}

std::string& stated_purpose() {
  static std::string purpose;
  return purpose;
}

std::string& refusal() {
  static std::string reason;
  return reason;
}

}  // namespace

Rank rank_of_process(const std::function<const char*(const char* name)>& variable) {
  for (const Launcher& launcher : kLaunchers) {
    const char* index = variable(launcher.index);
    const char* count = variable(launcher.count);
    if (index == nullptr || count == nullptr) continue;
    const char* on_host = variable(launcher.on_host);
    const Rank rank{number_of(launcher.index, index), number_of(launcher.count, count),
                    on_host != nullptr ? number_of(launcher.on_host, on_host) : 0};
    if (rank.index >= rank.count) {
      throw RunError(fmt::format("{} is {} of {} {}", launcher.index, index, launcher.count, count));
    }
    return rank;
  }
  return {};
}

Rank rank_of_process() {
  return rank_of_process([](const char* name) { return std::getenv(name); });
}

std::string count_variable_of_process() {
  for (const Launcher& launcher : kLaunchers) {
    if (std::getenv(launcher.index) != nullptr && std::getenv(launcher.count) != nullptr) return launcher.count;
  }
  return "";
}

void set_tasks(TaskList list) {
  TANDEM_REQUIRE(
      list.names.size() == list.addresses.size() && list.index >= 0 && list.index < static_cast<int>(list.names.size()),
      "each task has a name and an address, and this process is one of them");
  tasks() = std::move(list);
}

const TaskList& tasks_of_process() {
  return tasks();
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

LaunchedJob* joined_job() {
  return the_job.load();
}

void set_joined_job(LaunchedJob* job) {
  the_job.store(job);
}

bool reports_for_job() {
  const LaunchedJob* job = joined_job();
  return job == nullptr || job->rank().index == 0;
}

void interrupt_job(int signal) {
  the_signal.store(signal);
}

int signal_to_job() {
  return the_signal.load();
}

void set_purpose(std::string purpose) {
  stated_purpose() = std::move(purpose);
}

const std::string& purpose() {
  return stated_purpose();
}

void refuse_jobs(std::string reason) {
  refusal() = std::move(reason);
}

const std::string& reason_to_refuse_jobs() {
  return refusal();
}

}  // namespace tandem
