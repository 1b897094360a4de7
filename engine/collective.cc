#include "engine/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "engine/device.h"
#include "engine/purpose.h"

namespace tandem {
namespace {

enum class TensorParts : std::uint8_t { one, one_a_rank };

struct Traits {
  CollectiveKind kind;
  std::string_view name;
  TensorParts input, output;
  bool is_reducing, has_root;
};

constexpr std::array kTraits{
    Traits{CollectiveKind::all_reduce, "all_reduce", TensorParts::one, TensorParts::one, true, false},
    Traits{CollectiveKind::reduce, "reduce", TensorParts::one, TensorParts::one, true, true},
    Traits{CollectiveKind::broadcast, "broadcast", TensorParts::one, TensorParts::one, false, true},
    Traits{CollectiveKind::all_gather, "all_gather", TensorParts::one, TensorParts::one_a_rank, false, false},
    Traits{CollectiveKind::reduce_scatter, "reduce_scatter", TensorParts::one_a_rank, TensorParts::one, true, false},
    Traits{CollectiveKind::all_to_all, "all_to_all", TensorParts::one_a_rank, TensorParts::one_a_rank, false, false},
    Traits{CollectiveKind::send_receive, "send and receive", TensorParts::one, TensorParts::one, false, false},
};

const Traits& traits_of(CollectiveKind kind) {
  for (const Traits& traits : kTraits) {
    if (traits.kind == kind) return traits;
  }
  TANDEM_UNREACHABLE("a CollectiveKind outside its enumerators");
}

int count_of(TensorParts parts, int ranks) {
  return parts == TensorParts::one ? 1 : ranks;
}

}  // namespace

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::maximum:
      return "maximum";
    case Reduction::minimum:
      return "minimum";
  }
  TANDEM_UNREACHABLE("a Reduction outside its enumerators");
}

std::string_view name_of(CollectiveKind kind) {
  return traits_of(kind).name;
}

std::string_view record_name(CollectiveKind kind, int rank) {
  if (kind == CollectiveKind::send_receive) return rank == 0 ? "send" : "receive";
  return name_of(kind);
}

std::optional<CollectiveKind> collective_of_record(std::string_view record_name) {
  if (record_name == "send" || record_name == "receive") return CollectiveKind::send_receive;
  for (const Traits& traits : kTraits) {
    if (traits.name == record_name) return traits.kind;
  }
  return {};
}

bool is_reducing(CollectiveKind kind) {
  return traits_of(kind).is_reducing;
}

bool has_root(CollectiveKind kind) {
  return traits_of(kind).has_root;
}

int input_parts(CollectiveKind kind, int ranks) {
  return count_of(traits_of(kind).input, ranks);
}

int output_parts(CollectiveKind kind, int ranks) {
  return count_of(traits_of(kind).output, ranks);
}

std::string CollectiveSpec::text() const {
  std::string text = fmt::format("{} of {} {}", name_of(kind), count, name_of(dtype));
  if (is_reducing(kind)) text += fmt::format(" ({})", name_of(reduction));
  if (has_root(kind)) text += fmt::format(" {} rank {}", is_reducing(kind) ? "to" : "from", root);
  return text;
}

std::size_t CollectiveSpec::buffer_bytes(int ranks) const {
  return part_bytes() * static_cast<std::size_t>(std::max(input_parts(kind, ranks), output_parts(kind, ranks)));
}

double bus_bandwidth_factor(CollectiveKind kind, int ranks) {
  TANDEM_REQUIRE(ranks >= 1, fmt::format("a collective of {} ranks", ranks));
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::send_receive:
      return 1;
  }
  TANDEM_UNREACHABLE("a CollectiveKind outside its enumerators");
}

void check_group(std::span<const DeviceId> devices) {
  TANDEM_REQUIRE(!devices.empty(), "a communicator needs at least one device");
  std::set<DeviceId> distinct;
  for (const DeviceId& device : devices) {
    TANDEM_REQUIRE(distinct.insert(device).second, fmt::format("a communicator names {} twice", device.text()));
  }
}

std::optional<double> checked_timeout(std::optional<double> timeout_s) {
  TANDEM_REQUIRE(!timeout_s || *timeout_s > 0, fmt::format("a timeout of {} s, must be greater than 0", *timeout_s));
  return timeout_s && std::isfinite(*timeout_s) ? timeout_s : std::nullopt;
}

std::string call_text(CollectiveKind kind, Name purpose, std::int64_t sequence, const std::vector<DeviceId>& devices,
                      const std::function<bool(int rank)>& has_arrived) {
  constexpr int kNamedAtMost = 4;
  std::string missing;
  int missing_count = 0;
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    if (has_arrived(static_cast<int>(rank)) || ++missing_count > kNamedAtMost) continue;
    missing += (missing.empty() ? "; missing " : ", ") + devices[rank].text();
  }
  if (missing_count > kNamedAtMost) missing += fmt::format(" and {} more", missing_count - kNamedAtMost);
  const std::string cause = purpose.empty() ? "" : " for " + shown_beginning(purpose);
  return fmt::format("{} #{}{} ({} of {} devices arrived{})", name_of(kind), sequence, cause,
                     static_cast<int>(devices.size()) - missing_count, devices.size(), missing);
}

RunError call_mismatch(std::int64_t sequence, std::string_view caller, const CollectiveSpec& spec,
                       std::string_view other_caller, const CollectiveSpec& other_spec) {
  const auto [purpose, other_purpose] = shown_difference(spec.purpose, other_spec.purpose);
  const auto text_of = [](const CollectiveSpec& one, const std::string& cause) {
    return cause.empty() ? one.text() : fmt::format("{} for {}", one.text(), cause);
  };
  return RunError(fmt::format(
      "collective #{}: {} calls {}, {} calls {}; all workers of a group must make the same calls in the same order",
      sequence, caller, text_of(spec, purpose), other_caller, text_of(other_spec, other_purpose)));
}

DeadlineExceededError deadline_exceeded(std::string_view call, const std::vector<DeviceId>& devices,
                                        const DeviceId& waiting, double timeout_s) {
  constexpr std::size_t kNamedAtMost = 8;
  std::string group;
  for (std::size_t i = 0; i < devices.size() && i < kNamedAtMost; ++i) group += (i > 0 ? ", " : "") + devices[i].text();
  if (devices.size() > kNamedAtMost) group += fmt::format(" and {} more", devices.size() - kNamedAtMost);
  return DeadlineExceededError(fmt::format("{} is not complete {} s after {} was ready for it, its timeout (group: {})",
                                           call, timeout_s, waiting.text(), group));
}

}  // namespace tandem
