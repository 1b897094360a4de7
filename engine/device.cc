#include "engine/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tandem {
namespace {

// Reads a whole number that has only digits; returns nothing for signs, blanks or values beyond int.
std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.front() == '-' || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

std::optional<DeviceType> device_type(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  if (upper == "CPU") return DeviceType::cpu;
  if (upper == "GPU") return DeviceType::gpu;
  return {};
}

// TensorFlow's job names: a letter, then letters, digits and underscores.
bool is_job_name(std::string_view text) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), allowed);
}

// Splits at the first `separator`; the second part is empty when there is none.
std::pair<std::string_view, std::string_view> split(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

// The parts of a name found so far; each may occur once.
struct Parts {
  std::optional<std::string> job;
  std::optional<int> replica, task, index;
  std::optional<DeviceType> type;

  bool add(std::string_view part) {
    const auto [key, value] = split(part, ':');
    if (key == "job") return set(job, is_job_name(value) ? std::optional(std::string(value)) : std::nullopt);
    if (key == "replica") return value == "0" && set(replica, number(value));
    if (key == "task") return set(task, number(value));
    const auto [type_text, index_text] = key == "device" ? split(value, ':') : std::pair(key, value);
    return set(type, device_type(type_text)) && set(index, number(index_text));
  }

  template <typename T>
  static bool set(std::optional<T>& field, std::optional<T> value) {
    if (field || !value) return false;
    field = std::move(value);
    return true;
  }
};

}  // namespace

std::string_view name_of(DeviceType type) {
  return type == DeviceType::cpu ? "CPU" : "GPU";
}

std::string DeviceId::text() const {
  return fmt::format("/job:{}/replica:0/task:{}/device:{}:{}", job, task, name_of(type), index);
}

std::optional<DeviceId> DeviceId::parse(std::string_view text, const DeviceId& defaults) {
  if (!text.empty() && text.front() == '/') text.remove_prefix(1);
  if (text.empty() || text.back() == '/') return {};
  Parts parts;
  while (!text.empty()) {
    const auto [part, rest] = split(text, '/');
    if (!parts.add(part)) return {};
    text = rest;
  }
  return DeviceId{.job = parts.job.value_or(defaults.job),
                  .task = parts.task.value_or(defaults.task),
                  .type = parts.type.value_or(defaults.type),
                  .index = parts.index.value_or(defaults.index)};
}

void check_copy(const Tensor& to, const Tensor& from, const Device& device) {
  TANDEM_REQUIRE(to && from, "a copy without a tensor");
  TANDEM_REQUIRE(to.dtype() == from.dtype() && to.element_count() == from.element_count(),
                 fmt::format("a copy of {}{} to {}{}, must have one element type and size", name_of(from.dtype()),
                             from.shape().text(), name_of(to.dtype()), to.shape().text()));
  TANDEM_REQUIRE(&to.device() == &device || &from.device() == &device,
                 fmt::format("a copy from {} to {} on a stream of {}", from.device().id().text(),
                             to.device().id().text(), device.id().text()));
}

}  // namespace tandem
