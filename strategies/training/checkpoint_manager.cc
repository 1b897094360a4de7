#include "strategies/training/checkpoint_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "topologies/base/whole_file.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerHour = 3600;

// Returns the number at the end of "ckpt-12", 0 where there is none.
std::int64_t number_of(const std::string& name) {
  const auto dash = name.rfind('-');
  std::int64_t number = 0;
  if (dash != name.npos) std::from_chars(name.data() + dash + 1, name.data() + name.size(), number);
  return number;
}

void check(const CheckpointManagerOptions& options) {
  if (options.max_to_keep && *options.max_to_keep < 1) {
    throw ValueError(fmt::format("max_to_keep is {}; it must be positive, or empty to keep all", *options.max_to_keep));
  }
  const auto& hours = options.keep_checkpoint_every_n_hours;
  if (hours && !(*hours > 0)) {
    throw ValueError(fmt::format("keep_checkpoint_every_n_hours is {}; it must be positive", *hours));
  }
  if (options.checkpoint_interval && !options.step_counter) {
    throw ValueError("a checkpoint_interval needs a step_counter");
  }
  if (options.checkpoint_name.empty()) throw ValueError("checkpoint_name is empty");
  if (options.checkpoint_name.find_first_of("/\n") != std::string::npos) {
    throw ValueError("checkpoint_name has a slash or a line break; it is the beginning of a file's name");
  }
}

}  // namespace

CheckpointManager::CheckpointManager(const Checkpoint& checkpoint, std::string directory,
                                     CheckpointManagerOptions options)
    : checkpoint_(checkpoint), directory_(std::move(directory)), options_(std::move(options)) {
  check(options_);
  state_ = read_checkpoint_state(directory_);
  start_s_ = now_s();
  if (!state_) return;
  number_ = number_of(state_->latest);
  double latest_s = state_->last_preserved_s;
  for (const KeptCheckpoint& kept : state_->kept) latest_s = std::max(latest_s, kept.saved_s);
  before_s_ = std::max(0.0, latest_s - now_s());
}

std::string CheckpointManager::path_of(const std::string& name) const {
  return (fs::path(directory_) / name).string();
}

double CheckpointManager::now_s() const {
  return before_s_ + 1e-9 * static_cast<double>(checkpoint_.worker().now());
}

std::int64_t CheckpointManager::step() const {
  return static_cast<std::int64_t>(host_number(checkpoint_.worker(), options_.step_counter->read()));
}

bool CheckpointManager::is_before_interval() const {
  if (!options_.checkpoint_interval || !saved_step_) return false;
  return step() - *saved_step_ < *options_.checkpoint_interval;
}

std::optional<std::string> CheckpointManager::save(std::optional<std::int64_t> checkpoint_number, bool check_interval) {
  Checkpoint::require_outside_run(fmt::format("CheckpointManager::save() in '{}'", directory_));
  if (check_interval && is_before_interval()) return {};
  const std::int64_t number = checkpoint_number.value_or(number_ + 1);
  const std::string name = fmt::format("{}-{}", options_.checkpoint_name, number);
  const bool writes = checkpoint_.writes();
  std::error_code error;
  if (writes) fs::create_directories(directory_, error);
  if (error) throw UnknownError(fmt::format("cannot create directory {}: {}", directory_, error.message()));
  if (writes) remove_leftovers();
  checkpoint_.save(path_of(name));
  number_ = number;
  if (options_.step_counter) saved_step_ = step();
  if (!state_) state_ = CheckpointState{.last_preserved_s = start_s_};
  std::erase_if(state_->kept, [&](const KeptCheckpoint& kept) { return kept.name == name; });
  state_->kept.push_back({name, now_s()});
  state_->latest = name;
  // The state names what is deleted until that is gone, so that a later save() finishes what a crash interrupts.
  if (writes) write_checkpoint_state(directory_, *state_);
  const std::vector<std::string> old = taken_out();
  if (writes && !old.empty()) {
    remove(old);
    write_checkpoint_state(directory_, *state_);
  }
  return path_of(name);
}

// Takes the oldest checkpoints beyond the limit out of the state, and returns those that are to be deleted.
std::vector<std::string> CheckpointManager::taken_out() {
  std::vector<std::string> deleted;
  while (options_.max_to_keep && state_->kept.size() > static_cast<std::size_t>(*options_.max_to_keep)) {
    const KeptCheckpoint oldest = state_->kept.front();
    state_->kept.erase(state_->kept.begin());
    const auto& hours = options_.keep_checkpoint_every_n_hours;
    if (hours && oldest.saved_s - *hours * kSecondsPerHour >= state_->last_preserved_s) {
      state_->last_preserved_s = oldest.saved_s;
    } else {
      deleted.push_back(oldest.name);
    }
  }
  return deleted;
}

void CheckpointManager::remove(const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    std::error_code error;
    fs::remove(path_of(name), error);  // one that is not there is no error
    if (error) throw UnknownError(fmt::format("cannot delete {}: {}", path_of(name), error.message()));
  }
}

// Deletes what a run left that was killed while it wrote: "ckpt-4.1234.tmp", "checkpoint.1234.tmp".
void CheckpointManager::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory_, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with(options_.checkpoint_name + "-") || name.starts_with("checkpoint.");
    if (is_ours && is_temporary_name(name)) fs::remove(entry.path(), ignored);
  }
}

void CheckpointManager::remove_all() {
  Checkpoint::require_outside_run(fmt::format("CheckpointManager::remove_all() in '{}'", directory_));
  std::vector<std::string> names;
  if (state_) {
    for (const KeptCheckpoint& kept : state_->kept) names.push_back(kept.name);
  }
  state_.reset();
  start_s_ = now_s();
  number_ = 0;
  saved_step_.reset();
  if (!checkpoint_.writes()) return;
  remove_checkpoint_state(directory_);
  remove(names);
  remove_leftovers();
  std::error_code ignored;  // others may have files there
  fs::remove(directory_, ignored);
}

std::optional<std::string> CheckpointManager::restore_or_initialize() {
  Checkpoint::require_outside_run(fmt::format("CheckpointManager::restore_or_initialize() in '{}'", directory_));
  std::optional<std::string> latest = latest_checkpoint();
  if (!latest) {
    if (options_.init_fn) options_.init_fn();
    return {};
  }
  checkpoint_.restore(*latest);
  if (options_.step_counter) saved_step_ = step();
  return latest;
}

std::optional<std::string> CheckpointManager::latest_checkpoint() const {
  return state_ ? std::optional(path_of(state_->latest)) : std::nullopt;
}

std::vector<std::string> CheckpointManager::checkpoints() const {
  std::vector<std::string> paths;
  if (!state_) return paths;
  for (const KeptCheckpoint& kept : state_->kept) paths.push_back(path_of(kept.name));
  return paths;
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const std::optional<CheckpointState> state = read_checkpoint_state(directory);
  if (!state) return {};
  const std::string path = (fs::path(directory) / state->latest).string();
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    throw NotFoundError(fmt::format("{} names the checkpoint {}, which is not there", state_file_of(directory), path));
  }
  return path;
}

}  // namespace tandem
