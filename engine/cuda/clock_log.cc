#include "engine/cuda/clock_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace tandem::cuda {

ClockLog::ClockLog(std::vector<std::string> gpus, std::shared_ptr<const Nvml> nvml, std::chrono::milliseconds every)
    : gpus_(std::move(gpus)), nvml_(std::move(nvml)), readings_(gpus_.size()) {
  if (!nvml_) return;
  try {
    thread_ = std::thread([this, every] {
      std::unique_lock lock(mutex_);
      while (!over_.wait_for(lock, every, [this] { return is_over_; })) read_clocks();
    });
  } catch (const std::system_error&) {  // no thread could be started: there is only the reading at the end
  }
}

void ClockLog::read_clocks() {
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) readings_[gpu].push_back(nvml_->state_of(gpus_[gpu]));
}

void ClockLog::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

// Takes one reading at the end of a run that was too short for any other.
std::vector<std::string> ClockLog::finish() {
  stop();
  if (nvml_ && !readings_.empty() && readings_.front().empty()) read_clocks();
  std::vector<std::string> texts;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) texts.push_back(text_of(gpu));
  return texts;
}

std::vector<GpuUse> ClockLog::uses() const {
  std::vector<GpuUse> uses;
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    auto use = use_of(fmt::format("GPU {}", gpu), readings_[gpu], static_cast<unsigned>(getpid()));
    if (use) uses.push_back(std::move(*use));
  }
  return uses;
}

std::string ClockLog::text_of(std::size_t gpu) const {
  std::vector<GpuState> readings = readings_[gpu];
  if (readings.empty()) return "";
  std::sort(readings.begin(), readings.end(),
            [](const GpuState& one, const GpuState& other) { return one.sm_mhz < other.sm_mhz; });
  std::string text = clocks_text(readings[readings.size() / 2]);
  const auto &least = readings.front().sm_mhz, &most = readings.back().sm_mhz;
  if (text.empty() || !least || !most || readings.size() == 1) return text;
  return fmt::format("{} (SM {} to {} MHz in {} readings)", text, *least, *most, readings.size());
}

}  // namespace tandem::cuda
