#include "strategies/cluster/device_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "strategies/base/errors.h"
#include "strategies/cluster/text.h"

namespace tandem {
namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

bool is_device_type(std::string_view text) {
  const std::string type = upper(text);
  return type == "CPU" || type == "GPU" || type == "TPU";
}

int number(std::string_view text, std::string_view device) {
  const std::optional<int> value = whole_number(text);
  if (!value || *value < 0) throw ValueError(fmt::format("'{}' in device '{}' must be a number from 0", text, device));
  return *value;
}

void set_type(DeviceSpec& spec, std::string type, std::string_view device) {
  if (spec.type)
    throw ValueError(fmt::format("device '{}' has more than one device type, only one is allowed", device));
  spec.type = std::move(type);
}

void set_part(DeviceSpec& spec, const std::vector<std::string_view>& part, std::string_view device) {
  const auto is = [&](std::string_view key, std::size_t size) { return part.front() == key && part.size() == size; };
  const auto set_index = [&](std::string_view text) {
    if (text != "*") spec.index = number(text, device);
  };
  if (is("job", 2)) {
    spec.job = std::string(part[1]);
  } else if (is("replica", 2)) {
    spec.replica = number(part[1], device);
  } else if (is("task", 2)) {
    spec.task = number(part[1], device);
  } else if (part.size() <= 2 && is_device_type(part.front())) {
    set_type(spec, upper(part.front()), device);
    if (part.size() == 2) set_index(part[1]);
  } else if (is("device", 3)) {
    set_type(spec, std::string(part[1]), device);
    set_index(part[2]);
  } else if (!part.front().empty()) {
    throw ValueError(fmt::format("unknown part '{}' in device '{}' (known: job, replica, task, device, cpu, gpu, tpu)",
                                 part.front(), device));
  }
}

}  // namespace

DeviceSpec DeviceSpec::parse(std::string_view text) {
  DeviceSpec spec;
  for (const std::string_view part : split_text(text, '/')) set_part(spec, split_text(part, ':'), text);
  return spec;
}

DeviceSpec DeviceSpec::merged_with(const DeviceSpec& inner) const {
  return {.job = inner.job ? inner.job : job,
          .replica = inner.replica ? inner.replica : replica,
          .task = inner.task ? inner.task : task,
          .type = inner.type ? inner.type : type,
          .index = inner.index ? inner.index : index};
}

std::string DeviceSpec::text() const {
  std::string result;
  if (job) result += "/job:" + *job;
  if (replica) result += fmt::format("/replica:{}", *replica);
  if (task) result += fmt::format("/task:{}", *task);
  if (type) result += fmt::format("/device:{}:{}", *type, index ? std::to_string(*index) : "*");
  return result;
}

}  // namespace tandem
