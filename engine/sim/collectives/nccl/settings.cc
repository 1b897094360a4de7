// NCCL's environment variables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "engine/sim/collectives/nccl/selection.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

constexpr std::array<std::string_view, kAlgorithms> kAlgorithmNames = {"tree",         "ring", "collnetdirect",
                                                                       "collnetchain", "nvls", "nvlstree"};
constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"ll", "ll128", "simple"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view expected) {
  throw UsageError(fmt::format("NCCL: {}={} cannot be used; expected {}", name, value, expected));
}

// "ring,tree" or "^ring": which of `names` are allowed.
template <std::size_t count>
std::array<bool, count> parse_list(std::string_view name, const std::string& value,
                                   const std::array<std::string_view, count>& names) {
  const bool excludes = !value.empty() && value.front() == '^';
  std::array<bool, count> allowed{};
  allowed.fill(excludes);
  std::string_view rest = std::string_view(value).substr(excludes ? 1 : 0);
  while (true) {
    const std::size_t comma = rest.find(',');
    const auto found = std::find(names.begin(), names.end(), lower(rest.substr(0, comma)));
    if (found == names.end()) refuse(name, value, fmt::format("a list of {}, or ^ and a list", fmt::join(names, ", ")));
    allowed[static_cast<std::size_t>(found - names.begin())] = !excludes;
    if (comma == std::string_view::npos) return allowed;
    rest.remove_prefix(comma + 1);
  }
}

int parse_number(std::string_view name, const std::string& value, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most) {
    refuse(name, value, fmt::format("a whole number from {} to {}", least, most));
  }
  return number;
}

// "2.27" or "2.27.5".
int parse_version(std::string_view name, const std::string& value) {
  int parts[3] = {0, 0, 0};
  int count = 0;
  const char* at = value.data();
  const char* const last = at + value.size();
  while (count < 3) {
    const auto [end, error] = std::from_chars(at, last, parts[count]);
    if (error != std::errc() || parts[count] < 0 || parts[count] > 99) break;
    ++count;
    at = end;
    if (at == last || *at != '.') break;
    ++at;
  }
  const int version = 10000 * parts[0] + 100 * parts[1] + parts[2];
  if (at != last || count < 2 || version < kOldestVersion || parts[0] != 2) {
    refuse(name, value, "a version of NCCL from 2.5 on, such as 2.27");
  }
  return version;
}

void forbid(Settings& settings, Algorithm algorithm) {
  for (bool& allowed : settings.allows[static_cast<int>(algorithm)]) allowed = false;
}

}  // namespace

Settings settings_of(const std::map<std::string, std::string>& variables) {
  Settings settings;
  for (const auto& [name, value] : variables) {
    if (name == "NCCL_ALGO") {
      const auto allowed = parse_list(name, value, kAlgorithmNames);
      for (int i = 0; i < kAlgorithms; ++i) {
        if (!allowed[static_cast<std::size_t>(i)]) forbid(settings, static_cast<Algorithm>(i));
      }
    } else if (name == "NCCL_PROTO") {
      const auto allowed = parse_list(name, value, kProtocolNames);
      for (auto& row : settings.allows) {
        for (std::size_t i = 0; i < allowed.size(); ++i) row[i] = row[i] && allowed[i];
      }
      settings.forces_protocol = true;
    } else if (name == "NCCL_MIN_NCHANNELS") {
      settings.least_channels = parse_number(name, value, 1, 64);
    } else if (name == "NCCL_MAX_NCHANNELS") {
      settings.most_channels = parse_number(name, value, 1, 64);
    } else if (name == "NCCL_NVLS_ENABLE") {
      if (parse_number(name, value, 0, 2) == 0) {
        forbid(settings, Algorithm::nvls);
        forbid(settings, Algorithm::nvls_tree);
      }
    } else if (name == "NCCL_COLLNET_ENABLE") {
      settings.has_collnet = parse_number(name, value, 0, 1) == 1;
    } else if (name == "version") {
      settings.version = parse_version(name, value);
    } else if (name == "devices_per_process") {
      settings.devices_per_process = parse_number(name, value, 1, 64);
    } else {
      throw UsageError(fmt::format(
          "NCCL: there is no variable {}; known are NCCL_ALGO, NCCL_PROTO, NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS, "
          "NCCL_NVLS_ENABLE, NCCL_COLLNET_ENABLE, version and devices_per_process",
          name));
    }
  }
  if (settings.most_channels > 0 && settings.least_channels > settings.most_channels) {
    refuse("NCCL_MIN_NCHANNELS", std::to_string(settings.least_channels),
           fmt::format("at most NCCL_MAX_NCHANNELS, {}", settings.most_channels));
  }
  return settings;
}

}  // namespace tandem::sim::nccl
