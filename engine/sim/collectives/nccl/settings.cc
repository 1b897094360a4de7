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

// The last one, PAT, is not modelled.
constexpr std::array<std::string_view, kAlgorithms + 1> kAlgorithmNames = {
    "tree", "ring", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat"};
constexpr std::array<std::string_view, kProtocols> kProtocolNames = {"ll", "ll128", "simple"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

[[noreturn]] void refuse(std::string_view name, std::string_view value, std::string_view expected) {
  throw UsageError(fmt::format("NCCL: {}={} cannot be used; expected {}", name, value, expected));
}

std::optional<CollectiveKind> kind_of_prefix(std::string_view text) {
  const std::string name = lower(text);
  if (name == "allreduce") return CollectiveKind::all_reduce;
  if (name == "reduce") return CollectiveKind::reduce;
  if (name == "broadcast") return CollectiveKind::broadcast;
  if (name == "allgather") return CollectiveKind::all_gather;
  if (name == "reducescatter") return CollectiveKind::reduce_scatter;
  return {};
}

// The elements of `names` that a variable allows for each collective: NVIDIA/nccl src/graph/tuning.cc parseList, 2.24
// and later. "ring,tree" allows only these, "^ring" all others. "allreduce:tree;allgather:ring" has a list for each;
// the first list may be without a collective, and then holds for those that are not named.
template <std::size_t count>
class ListParser {
 public:
  using Allowed = std::array<bool, count>;

  ListParser(std::string_view name, std::string_view value, const std::array<std::string_view, count>& names)
      : name_(name), value_(value), names_(names) {
    for (Allowed& all : allowed_) all.fill(true);
  }

  void parse() {
    bool is_first = true;
    for (std::string_view rest = value_; is_first || !rest.empty(); is_first = false) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      parse_entry(rest.substr(0, end), is_first);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  bool is_stated(int kind) const { return stated_[static_cast<std::size_t>(kind)]; }
  const Allowed& allowed(int kind) const { return allowed_[static_cast<std::size_t>(kind)]; }
  bool names_collectives() const { return names_collectives_; }

 private:
  void parse_entry(std::string_view entry, bool is_first) {
    const std::size_t colon = entry.find(':');
    if (colon == entry.npos) {
      if (!is_first) refuse(name_, value_, "a collective and a colon before each list but the first");
      allowed_.fill(parse_list(entry));
      stated_.fill(true);
      return;
    }
    const auto kind = kind_of_prefix(entry.substr(0, colon));
    if (!kind) {
      refuse(name_, value_, "one of allreduce, reduce, broadcast, allgather and reducescatter before the colon");
    }
    allowed_[static_cast<std::size_t>(*kind)] = parse_list(entry.substr(colon + 1));
    stated_[static_cast<std::size_t>(*kind)] = true;
    names_collectives_ = true;
  }

  Allowed parse_list(std::string_view list) const {
    const bool excludes = list.starts_with('^');
    Allowed allowed;
    allowed.fill(excludes);
    std::string_view rest = list.substr(excludes ? 1 : 0);
    while (true) {
      const std::size_t comma = rest.find(',');
      const auto found = std::find(names_.begin(), names_.end(), lower(rest.substr(0, comma)));
      if (found == names_.end()) {
        refuse(name_, value_, fmt::format("a list of {}, or ^ and a list", fmt::join(names_, ", ")));
      }
      allowed[static_cast<std::size_t>(found - names_.begin())] = !excludes;
      if (comma == std::string_view::npos) return allowed;
      rest.remove_prefix(comma + 1);
    }
  }

  std::string_view name_, value_;
  const std::array<std::string_view, count>& names_;
  std::array<Allowed, kKinds> allowed_{};
  std::array<bool, kKinds> stated_{};
  bool names_collectives_ = false;
};

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
  if (at != last || count < 2) refuse(name, value, "two or three numbers, such as 2.27 or 2.27.5");
  if (parts[0] != 2) refuse(name, value, "2 as the first number: no other major version is modelled");
  const int version = 10000 * parts[0] + 100 * parts[1] + parts[2];
  if (version < kOldestVersion) refuse(name, value, "2.5 or later: older versions are not modelled");
  return version;
}

void forbid(Settings& settings, Algorithm algorithm) {
  for (auto& allowed : settings.algorithms) allowed[static_cast<std::size_t>(algorithm)] = false;
}

// Returns whether the variable has lists for single collectives.
bool read_algorithms(const std::string& name, const std::string& value, Settings& settings) {
  ListParser parser(name, value, kAlgorithmNames);
  parser.parse();
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto& allowed = parser.allowed(kind);
    const auto modelled = allowed.begin() + kAlgorithms;
    if (std::find(allowed.begin(), modelled, true) == modelled) {
      refuse(name, value, "an algorithm besides PAT, which is not modelled");
    }
    for (std::size_t i = 0; i < kAlgorithms; ++i) settings.algorithms[static_cast<std::size_t>(kind)][i] &= allowed[i];
  }
  return parser.names_collectives();
}

bool read_protocols(const std::string& name, const std::string& value, Settings& settings) {
  ListParser parser(name, value, kProtocolNames);
  parser.parse();
  for (int kind = 0; kind < kKinds; ++kind) {
    settings.protocols[static_cast<std::size_t>(kind)] = parser.allowed(kind);
    settings.forces_protocol[static_cast<std::size_t>(kind)] = parser.is_stated(kind);
  }
  return parser.names_collectives();
}

}  // namespace

Settings settings_of(const std::map<std::string, std::string>& variables) {
  Settings settings;
  bool names_collectives = false;
  for (const auto& [name, value] : variables) {
    if (name == "NCCL_ALGO") {
      names_collectives |= read_algorithms(name, value, settings);
    } else if (name == "NCCL_PROTO") {
      names_collectives |= read_protocols(name, value, settings);
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
  if (names_collectives && settings.version < kStrictVersion) {
    refuse("version", variables.at("version"), "2.24 or later with lists for single collectives");
  }
  if (settings.most_channels > 0 && settings.least_channels > settings.most_channels) {
    refuse("NCCL_MIN_NCHANNELS", std::to_string(settings.least_channels),
           fmt::format("at most NCCL_MAX_NCHANNELS, {}", settings.most_channels));
  }
  return settings;
}

}  // namespace tandem::sim::nccl
