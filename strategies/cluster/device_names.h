// Full device names from partial ones: TensorFlow's device_util. Pure functions, for any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// The task that this process is after joining a cluster.
struct JoinedTask {
  std::string job{};
  int task = 0;
};

// "/job:J/replica:0/task:T/device:TYPE:I". What `device` lacks comes from `defaults`, then from the joined task (job
// localhost, task 0 without one), then it is CPU:0. ValueError for a text that names no device, AssertionError for a
// lower-case type after "device:".
std::string canonicalize_device(std::string_view device, std::string_view defaults = "",
                                const std::optional<JoinedTask>& joined = {});
// The same with what is missing from the device scope that is open; "" when none is.
std::string resolve_device(std::string_view device, std::string_view current_scope,
                           const std::optional<JoinedTask>& joined = {});
// CPU:0 of the device's task.
std::string host_of_device(std::string_view device, const std::optional<JoinedTask>& joined = {});
// The device scopes around some code as one text: inner parts replace outer ones. Outermost first.
std::string merge_device_scopes(const std::vector<std::string>& scopes);
// "/device:GPU:0" ... or, without GPUs, "/device:CPU:0" alone.
std::vector<std::string> local_devices_from_num_gpus(int num_gpus);

}  // namespace tandem
