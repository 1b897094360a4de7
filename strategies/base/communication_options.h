// How collectives are carried out: TensorFlow's tf.distribute.experimental.CommunicationOptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem {

enum class CommunicationImplementation : std::uint8_t { automatic, ring, nccl };
std::string_view name_of(CommunicationImplementation implementation);                       // "AUTO"
CommunicationImplementation communication_implementation_from_name(std::string_view name);  // any case; ValueError

struct CommunicationOptions {
  std::int64_t bytes_per_pack = 0;  // 0: one pack
  std::optional<double> timeout_seconds{};
  CommunicationImplementation implementation = CommunicationImplementation::automatic;

  // These options, with each field of `other` that is not at its default.
  CommunicationOptions merge(const CommunicationOptions& other) const;
  bool operator==(const CommunicationOptions&) const = default;
};

// ValueError for a negative number of bytes.
void check_communication_options(const CommunicationOptions& options);

}  // namespace tandem
