// A device name of which parts may be missing, as device scopes and placements merge them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem {

struct DeviceSpec {
  std::optional<std::string> job{};
  std::optional<int> replica{}, task{};
  std::optional<std::string> type{};  // "CPU", "GPU", "TPU"
  std::optional<int> index{};

  // Parts in any order: "/job:ps/task:1", "/device:GPU:0", "/gpu:0", "GPU:0", "" for none; an index of * is missing.
  // ValueError for an unknown part, a number that is none, and a second device type.
  static DeviceSpec parse(std::string_view text);
  // This spec, with every part that `inner` has taken from it.
  DeviceSpec merged_with(const DeviceSpec& inner) const;
  std::string text() const;  // "/job:ps/task:1/device:CPU:0"; missing parts are left out, a missing index is *
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace tandem
