#include "strategies/base/communication_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "strategies/base/errors.h"

namespace tandem {

std::string_view name_of(CommunicationImplementation implementation) {
  switch (implementation) {
    case CommunicationImplementation::automatic:
      return "AUTO";
    case CommunicationImplementation::ring:
      return "RING";
    case CommunicationImplementation::nccl:
      return "NCCL";
  }
  TANDEM_UNREACHABLE("a CommunicationImplementation");
}

CommunicationImplementation communication_implementation_from_name(std::string_view name) {
  using enum CommunicationImplementation;
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  for (const CommunicationImplementation known : {automatic, ring, nccl}) {
    if (upper == name_of(known)) return known;
  }
  throw ValueError(fmt::format("unknown communication implementation '{}' (known: AUTO, RING, NCCL)", name));
}

CommunicationOptions CommunicationOptions::merge(const CommunicationOptions& other) const {
  CommunicationOptions merged = *this;
  if (other.bytes_per_pack != 0) merged.bytes_per_pack = other.bytes_per_pack;
  if (other.timeout_seconds) merged.timeout_seconds = other.timeout_seconds;
  if (other.implementation != CommunicationImplementation::automatic) merged.implementation = other.implementation;
  return merged;
}

void check_communication_options(const CommunicationOptions& options) {
  if (options.bytes_per_pack < 0) {
    throw ValueError(fmt::format("bytes_per_pack is {}, must not be negative", options.bytes_per_pack));
  }
  if (options.timeout_seconds && !(*options.timeout_seconds > 0)) {
    throw ValueError(fmt::format("timeout_seconds is {}, must be greater than 0", *options.timeout_seconds));
  }
}

}  // namespace tandem
