// A partial device name, as device scopes and placements merge them.
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

  // Parses parts in any order: "/job:ps/task:1", "/device:GPU:0", "/gpu:0", "GPU:0", "". An index of * counts as
  // missing. ValueError for an unknown part, a malformed number, and a second device type.
  static DeviceSpec parse(std::string_view text);
  // Returns this spec with the parts that `inner` has replaced by inner's.
  DeviceSpec merged_with(const DeviceSpec& inner) const;
  std::string text() const;  // "/job:ps/task:1/device:CPU:0"; missing parts are left out, a missing index is *
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace tandem
