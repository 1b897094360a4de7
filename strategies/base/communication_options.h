// tf.distribute.experimental.CommunicationOptions: how the values of replicas travel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem {

enum class CommunicationImplementation : std::uint8_t { automatic, ring, nccl };
std::string_view name_of(CommunicationImplementation implementation);                       // "AUTO"
CommunicationImplementation communication_implementation_from_name(std::string_view name);  // any case; ValueError

// A field at its default leaves the choice to the strategy or, in the options of a single call, to the strategy's own
// options.
struct CommunicationOptions {
  std::int64_t bytes_per_pack = 0;          // a pack is closed once it is larger; 0: see Packing
  std::optional<double> timeout_seconds{};  // of a collective, see Communicator::set_timeout
  // Ignored: the engine's communicator serves all values.
  CommunicationImplementation implementation = CommunicationImplementation::automatic;

  // Returns these options with each field of `other` that is not at its default.
  CommunicationOptions merge(const CommunicationOptions& other) const;
  bool operator==(const CommunicationOptions&) const = default;
};

// Throws ValueError for a negative number of bytes and for a timeout that is not greater than 0.
void check_communication_options(const CommunicationOptions& options);

}  // namespace tandem
