#include "scenarios/validation/ledger/ledger_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

namespace tandem::validation {
namespace {

using Json = nlohmann::ordered_json;

// A machine of the catalog for accelerators whose names have all of some parts.
struct KnownMachine {
  std::array<std::string_view, 3> parts;  // in capital letters
  int most_devices;                       // of a node
  std::string_view node;
};

// The first that fits. Names say the form of the card, and how much memory it has where there are two.
constexpr auto kMachines = std::to_array<KnownMachine>({
    {{"A100", "SXM", "40GB"}, 4, "hgx-a100-4gpu-40gb"},
    {{"A100", "SXM", "40GB"}, 8, "dgx-a100-40gb"},
    {{"A100", "SXM", ""}, 4, "hgx-a100-4gpu"},
    {{"A100", "SXM", ""}, 8, "dgx-a100"},
    {{"A100", "PCIE", "80GB"}, 8, "pcie-8gpu"},
    {{"H100", "SXM", "80GB"}, 4, "hgx-h100-4gpu"},
    {{"H100", "SXM", ""}, 8, "hgx-h100"},
    {{"H100", "PCIE", ""}, 8, "h100-pcie-8gpu"},
    {{"H200", "SXM", ""}, 8, "hgx-h200"},
    {{"GB200", "", ""}, 4, "gb200-nvl72"},
    {{"GB300", "", ""}, 4, "gb300-nvl72"},
    {{"B200", "SXM", ""}, 8, "hgx-b200"},
    {{"B300", "SXM", ""}, 8, "hgx-b300"},
    {{"A30", "", ""}, 8, "a30-8gpu"},
    {{"A10G", "", ""}, 8, "aws-g5"},
    {{"RTX A5000", "", ""}, 4, "rtx-a5000-4gpu"},
    {{"L40S", "", ""}, 8, "l40s-8gpu"},
    {{"L40", "", ""}, 8, "l40-8gpu"},
    {{"L4", "", ""}, 8, "aws-g6"},
    {{"MI355X", "", ""}, 8, "mi355x-8gpu"},
});

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return text;
}

// "A30" is no part of "A300", and "L4" none of "L40".
bool has_word(std::string_view text, std::string_view word) {
  const auto is_of_word = [](char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0; };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_of_word(text[at - 1]), ends = end == text.size() || !is_of_word(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

// Forms are followed by a number of their generation: SXM4.
bool has_part(std::string_view text, std::string_view part) {
  return part == "SXM" || part.empty() ? text.find(part) != text.npos : has_word(text, part);
}

const KnownMachine& known_machine(const LedgerRow& row) {
  const std::string name = in_capitals(row.accelerator);
  bool is_known = false;
  for (const KnownMachine& machine : kMachines) {
    if (!std::ranges::all_of(machine.parts, [&](std::string_view part) { return has_part(name, part); })) continue;
    is_known = true;
    if (row.devices_of_node <= machine.most_devices) return machine;
  }
  throw NotPredicted(is_known ? fmt::format("no machine of the catalog has {} {}", row.devices_of_node, row.accelerator)
                              : fmt::format("no machine of the catalog has {}", row.accelerator));
}

// The ports of a node for what devices send to each other.
struct Ports {
  int count = 0;
  double gigabits = 0;  // a second, of each
};

// Reads "Storage: 2x ConnectX-6 IB HDR 200Gb/sec, Compute: 8x ConnectX-7 IB NDR 400Gb/s".
std::optional<Ports> ports_of(const std::string& network) {
  static const std::regex one(R"((\d{1,3})\s*x\s*[^,:;]*?(?:IB|InfiniBand)[^,:;]*?(\d{1,5})\s*Gb/s)",
                              std::regex::icase);
  const std::string_view compute = "Compute:";
  const std::size_t at = network.find(compute);
  const std::string text = at == std::string::npos ? network : network.substr(at + compute.size());
  std::smatch found;
  if (!std::regex_search(text, found, one)) return std::nullopt;
  return Ports{.count = std::stoi(found[1].str()), .gigabits = std::stod(found[2].str())};
}

}  // namespace

Json machine_of(const LedgerRow& row) {
  Json machine{{"node", known_machine(row).node}};
  if (row.nodes == 1) return machine;
  // Jobs on several racks get 16 of the 18 machines of each, so that powers of two fit.
  constexpr int kMachinesOfRack = 18, kOfLargeJobs = 16;
  const bool has_racks = machine.at("node").get<std::string>().ends_with("nvl72");
  if (has_racks && row.nodes > kMachinesOfRack && row.nodes % kOfLargeJobs == 0)
    machine["nvlink_domain"] = kOfLargeJobs;
  constexpr double kBitsOfByte = 8;
  Json fabric{{"kind", "switch"}};
  if (const auto ports = ports_of(row.network)) {
    fabric["transport"] = "infiniband";
    fabric["nic_bandwidth"] = fmt::format("{}GB/s", ports->gigabits / kBitsOfByte);
    machine["nics"] = std::min(ports->count, row.devices_of_node);
  } else {
    machine["nics_stated"] = false;
  }
  machine["fabric"] = std::move(fabric);
  return machine;
}

}  // namespace tandem::validation
