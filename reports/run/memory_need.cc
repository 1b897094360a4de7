#include "reports/run/memory_need.h"

#include <fmt/format.h>

#include <array>

#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::array<MemoryPart, 8> kMemoryParts{{{"parameters", &MemoryNeed::parameters},
                                                  {"gradients", &MemoryNeed::gradients},
                                                  {"optimizer", &MemoryNeed::optimizer},
                                                  {"activations", &MemoryNeed::activations},
                                                  {"buckets", &MemoryNeed::buckets},
                                                  {"input", &MemoryNeed::input},
                                                  {"workspace", &MemoryNeed::workspace},
                                                  {"reserved", &MemoryNeed::reserved}}};

}  // namespace

std::string memory_size_text(std::int64_t bytes) {
  return format_quantity(static_cast<double>(bytes), Dimension::bytes);
}

std::int64_t MemoryNeed::total() const {
  std::int64_t sum = 0;
  for (const MemoryPart& part : memory_parts()) sum += this->*part.bytes;
  return sum;
}

std::span<const MemoryPart> memory_parts() {
  return kMemoryParts;
}

std::string memory_text(const MemoryNeed& need) {
  std::string text = "needs " + memory_size_text(need.total());
  if (need.available > 0) text += " of " + memory_size_text(need.available);
  const char* separator = ": ";
  for (const MemoryPart& part : memory_parts()) {
    if (need.*part.bytes == 0) continue;
    text += fmt::format("{}{} {}", separator, part.name, memory_size_text(need.*part.bytes));
    separator = ", ";
  }
  return text;
}

}  // namespace tandem
