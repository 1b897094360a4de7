// TensorFlow's device_util: completes partial device names. Pure functions, for any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The task that this process became by joining a cluster.
struct JoinedTask {
  std::string job{};
  int task = 0;
};

// Returns "/job:J/replica:0/task:T/device:TYPE:I". What `device` lacks is taken from `defaults`, then from the joined
// task (without one: job localhost, task 0), and the device defaults to CPU:0. ValueError for a text that names no
// device, AssertionError for a lower-case type after "device:".
std::string canonicalize_device(std::string_view device, std::string_view defaults = "",
                                const std::optional<JoinedTask>& joined = {});
// Does the same with defaults from the device scope that is open, "" if none is.
std::string resolve_device(std::string_view device, std::string_view current_scope,
                           const std::optional<JoinedTask>& joined = {});
// Returns CPU:0 of the device's task.
std::string host_of_device(std::string_view device, const std::optional<JoinedTask>& joined = {});
// Merges nested device scopes, given from the outermost, into one text: inner parts replace outer ones.
std::string merge_device_scopes(const std::vector<std::string>& scopes);
// Returns "/device:GPU:0" and so on, or for 0 GPUs "/device:CPU:0".
std::vector<std::string> local_devices_from_num_gpus(int num_gpus);

}  // namespace tandem
