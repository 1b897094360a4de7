#include "topologies/readers/pci_ids.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;
constexpr unsigned kIntel = 0x8086;
constexpr unsigned kMellanox = 0x15b3;
constexpr unsigned kAmazon = 0x1d0f;
constexpr unsigned kBroadcom = 0x14e4;

// Products by id: pci.ids, version 2023.04.10, and for newer products pciutils/pciids pci.ids, commit df389f5c.
constexpr std::array<PciGpu, 63> kGpus{{
    {kNvidia, 0x102d, "NVIDIA Tesla K80", "sm_37", "azure-nc24-k80"},
    {kNvidia, 0x17fd, "NVIDIA Tesla M40", "sm_52", "pcie-m40-8gpu"},
    {kNvidia, 0x17c2, "NVIDIA GeForce GTX TITAN X", "sm_52", "pcie-titanx-8gpu"},
    {kNvidia, 0x15f7, "NVIDIA Tesla P100 PCIe 12 GB", "sm_60", "pcie-p100-8gpu"},
    {kNvidia, 0x15f8, "NVIDIA Tesla P100 PCIe 16 GB", "sm_60", "pcie-p100-8gpu"},
    {kNvidia, 0x15f9, "NVIDIA Tesla P100 SXM2 16 GB", "sm_60", "dgx1-p100"},
    {kNvidia, 0x1b00, "NVIDIA TITAN X (Pascal)", "sm_61", "pcie-titanxp-10gpu"},
    {kNvidia, 0x1b06, "NVIDIA GeForce GTX 1080 Ti", "sm_61", "pcie-1080ti-10gpu"},
    {kNvidia, 0x1db1, "NVIDIA Tesla V100 SXM2 16 GB", "sm_70", "dgx1-v100"},
    {kNvidia, 0x1db5, "NVIDIA Tesla V100 SXM2 32 GB", "sm_70", "dgx1-v100"},
    {kNvidia, 0x1df5, "NVIDIA Tesla V100 SXM2 16 GB", "sm_70", "dgx1-v100"},
    {kNvidia, 0x1db4, "NVIDIA Tesla V100 PCIe 16 GB", "sm_70", "v100-pcie-4gpu"},
    {kNvidia, 0x1db6, "NVIDIA Tesla V100 PCIe 32 GB", "sm_70", "v100-pcie-4gpu"},
    {kNvidia, 0x1df6, "NVIDIA Tesla V100S PCIe 32 GB", "sm_70", "v100-pcie-4gpu"},
    {kNvidia, 0x1db8, "NVIDIA Tesla V100 SXM3 32 GB", "sm_70", "dgx2"},
    {kNvidia, 0x1eb8, "NVIDIA T4", "sm_75", "aws-g4dn"},
    {kNvidia, 0x1e30, "NVIDIA Quadro RTX 8000", "sm_75", "quadro-rtx8000"},
    {kNvidia, 0x1e78, "NVIDIA Quadro RTX 8000", "sm_75", "quadro-rtx8000"},
    {kNvidia, 0x1e04, "NVIDIA GeForce RTX 2080 Ti", "sm_75", "rtx2080ti-2gpu"},
    {kNvidia, 0x1e07, "NVIDIA GeForce RTX 2080 Ti", "sm_75", "rtx2080ti-2gpu"},
    {kNvidia, 0x20b0, "NVIDIA A100 SXM4 40 GB", "sm_80", "dgx-a100-40gb"},
    {kNvidia, 0x20b2, "NVIDIA A100 SXM4 80 GB", "sm_80", "dgx-a100"},
    {kNvidia, 0x20b1, "NVIDIA A100 PCIe 40 GB", "sm_80", "a100-pcie-4gpu-nop2p"},
    {kNvidia, 0x20f1, "NVIDIA A100 PCIe 40 GB", "sm_80", "a100-pcie-4gpu-nop2p"},
    {kNvidia, 0x20b5, "NVIDIA A100 PCIe 80 GB", "sm_80", "pcie-8gpu"},
    {kNvidia, 0x20f3, "NVIDIA A800 SXM4 80 GB", "sm_80", "hgx-a800"},
    {kNvidia, 0x20b7, "NVIDIA A30", "sm_80", "a30-8gpu"},
    {kNvidia, 0x2235, "NVIDIA A40", "sm_86", ""},
    {kNvidia, 0x2236, "NVIDIA A10", "sm_86", "a10-4gpu"},
    {kNvidia, 0x2237, "NVIDIA A10G", "sm_86", "aws-g5"},
    {kNvidia, 0x2230, "NVIDIA RTX A6000", "sm_86", "rtx-a6000-4gpu"},
    {kNvidia, 0x2231, "NVIDIA RTX A5000", "sm_86", "rtx-a5000-4gpu"},
    {kNvidia, 0x2204, "NVIDIA GeForce RTX 3090", "sm_86", "rtx3090-4gpu"},
    {kNvidia, 0x27b8, "NVIDIA L4", "sm_89", "aws-g6"},
    {kNvidia, 0x26b5, "NVIDIA L40", "sm_89", "l40-8gpu"},
    {kNvidia, 0x26b9, "NVIDIA L40S", "sm_89", "l40s-8gpu"},
    {kNvidia, 0x26b1, "NVIDIA RTX 6000 Ada", "sm_89", "rtx6000-ada-4gpu"},
    {kNvidia, 0x2684, "NVIDIA GeForce RTX 4090", "sm_89", "rtx4090-8gpu"},
    {kNvidia, 0x2330, "NVIDIA H100 SXM5 80 GB", "sm_90", "hgx-h100"},
    {kNvidia, 0x2331, "NVIDIA H100 PCIe 80 GB", "sm_90", "h100-pcie-8gpu"},
    {kNvidia, 0x2321, "NVIDIA H100 NVL", "sm_90", ""},
    {kNvidia, 0x2324, "NVIDIA H800 SXM5 80 GB", "sm_90", "hgx-h800"},
    {kNvidia, 0x2329, "NVIDIA H20", "sm_90", ""},
    {kNvidia, 0x2335, "NVIDIA H200 SXM5 141 GB", "sm_90", "hgx-h200"},
    {kNvidia, 0x233b, "NVIDIA H200 NVL", "sm_90", ""},
    {kNvidia, 0x2342, "NVIDIA GH200 96 GB", "sm_90", "gh200"},
    {kNvidia, 0x2901, "NVIDIA B200 SXM6 180 GB", "sm_100", "hgx-b200"},
    {kNvidia, 0x2941, "NVIDIA GB200 186 GB", "sm_100", "gb200-nvl72"},
    {kNvidia, 0x3182, "NVIDIA B300 SXM6 270 GB", "sm_103", "hgx-b300"},
    {kNvidia, 0x2bb5, "NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120", "rtx-pro-6000-8gpu"},
    {kNvidia, 0x2b85, "NVIDIA GeForce RTX 5090", "sm_120", "rtx5090-8gpu"},
    {kAmd, 0x66a0, "AMD Instinct MI60", "gfx906", ""},
    {kAmd, 0x66a1, "AMD Instinct MI60", "gfx906", ""},
    {kAmd, 0x738c, "AMD Instinct MI100", "gfx908", ""},
    {kAmd, 0x738e, "AMD Instinct MI100", "gfx908", ""},
    {kAmd, 0x7408, "AMD Instinct MI250X, one of its two dies", "gfx90a", ""},
    {kAmd, 0x740c, "AMD Instinct MI250X, one of its two dies", "gfx90a", ""},
    {kAmd, 0x740f, "AMD Instinct MI210", "gfx90a", ""},
    {kAmd, 0x74a1, "AMD Instinct MI300X", "gfx942", "mi300x-8gpu"},
    {kAmd, 0x74b5, "AMD Instinct MI300X", "gfx942", "mi300x-8gpu"},
    {kAmd, 0x74a5, "AMD Instinct MI325X", "gfx942", ""},
    {kAmd, 0x75a0, "AMD Instinct MI350X", "gfx950", ""},
    {kAmd, 0x75a3, "AMD Instinct MI355X", "gfx950", "mi355x-8gpu"},
}};

constexpr double kGbit = 1e9 / 8;

// Products by id as above; the fastest port of each by its vendor's product page. EFA: instances' bandwidth by their
// number of adapters, AWS EC2 accelerated computing instances.
constexpr std::array<PciNic, 39> kNics{{
    {kMellanox, 0x1003, "ConnectX-3", 40 * kGbit, ""},
    {kMellanox, 0x1007, "ConnectX-3 Pro", 40 * kGbit, ""},
    {kMellanox, 0x1011, "Connect-IB", 54.5 * kGbit, "infiniband"},
    {kMellanox, 0x1013, "ConnectX-4", 100 * kGbit, ""},
    {kMellanox, 0x1014, "ConnectX-4 virtual function", 100 * kGbit, ""},
    {kMellanox, 0x1015, "ConnectX-4 Lx", 25 * kGbit, "roce"},
    {kMellanox, 0x1016, "ConnectX-4 Lx virtual function", 25 * kGbit, "roce"},
    {kMellanox, 0x1017, "ConnectX-5", 100 * kGbit, ""},
    {kMellanox, 0x1018, "ConnectX-5 virtual function", 100 * kGbit, ""},
    {kMellanox, 0x1019, "ConnectX-5 Ex", 100 * kGbit, ""},
    {kMellanox, 0x101a, "ConnectX-5 Ex virtual function", 100 * kGbit, ""},
    {kMellanox, 0x101b, "ConnectX-6", 200 * kGbit, ""},
    {kMellanox, 0x101c, "ConnectX-6 virtual function", 200 * kGbit, ""},
    {kMellanox, 0x101d, "ConnectX-6 Dx", 100 * kGbit, "roce"},
    {kMellanox, 0x101f, "ConnectX-6 Lx", 25 * kGbit, "roce"},
    {kMellanox, 0x1021, "ConnectX-7", 400 * kGbit, ""},
    {kMellanox, 0x1023, "ConnectX-8", 800 * kGbit, ""},
    {kMellanox, 0xa2dc, "BlueField-3", 400 * kGbit, ""},
    {kBroadcom, 0x1750, "BCM57508", 100 * kGbit, "roce"},
    {kBroadcom, 0x1760, "BCM57608", 400 * kGbit, "roce"},
    {kIntel, 0x1572, "X710", 10 * kGbit, "socket"},
    {kIntel, 0x15ff, "X710 10GBASE-T", 10 * kGbit, "socket"},
    {kIntel, 0x1583, "XL710", 40 * kGbit, "socket"},
    {kIntel, 0x1584, "XL710", 40 * kGbit, "socket"},
    {kIntel, 0x158a, "XXV710", 25 * kGbit, "socket"},
    {kIntel, 0x158b, "XXV710", 25 * kGbit, "socket"},
    {kIntel, 0x1591, "E810-C", 100 * kGbit, ""},
    {kIntel, 0x1592, "E810-C QSFP", 100 * kGbit, ""},
    {kIntel, 0x1593, "E810-C SFP", 25 * kGbit, ""},
    {kIntel, 0x1599, "E810-XXV", 25 * kGbit, ""},
    {kIntel, 0x159a, "E810-XXV QSFP", 25 * kGbit, ""},
    {kIntel, 0x159b, "E810-XXV SFP", 25 * kGbit, ""},
    {kIntel, 0x24f0, "Omni-Path 100", 100 * kGbit, ""},
    {kIntel, 0x24f1, "Omni-Path 100", 100 * kGbit, ""},
    {kAmazon, 0xefa0, "Elastic Fabric Adapter", 100 * kGbit, "efa"},
    {kAmazon, 0xefa1, "Elastic Fabric Adapter", 100 * kGbit, "efa"},
    {kAmazon, 0xefa2, "Elastic Fabric Adapter", 200 * kGbit, "efa"},
    {kAmazon, 0xefa3, "Elastic Fabric Adapter", 400 * kGbit, "efa"},
    {kAmazon, 0xec20, "Elastic Network Adapter", 0, "socket"},
}};

struct Hint {
  std::string_view word;  // in lower case
  std::string_view machine;
};
// Clouds' names of their machines, in file names and comments.
constexpr std::array<Hint, 25> kHints{{
    {"p3dn", "aws-p3dn"},
    {"p4d", "aws-p4d"},
    {"p4de", "aws-p4de"},
    {"p5", "aws-p5"},
    {"p5e", "aws-p5e"},
    {"p5en", "aws-p5en"},
    {"p6-b200", "aws-p6-b200"},
    {"g4dn", "aws-g4dn"},
    {"g5", "aws-g5"},
    {"g6", "aws-g6"},
    {"ndv2", "azure-nd-v2"},
    {"nd40rs", "azure-nd-v2"},
    {"ndv4", "azure-nd-a100-v4"},
    {"nd96asr", "azure-nd-a100-v4"},
    {"ndmv4", "azure-ndm-a100-v4"},
    {"nd96amsr", "azure-ndm-a100-v4"},
    {"ndv5", "azure-nd-h100-v5"},
    {"nd96isr", "azure-nd-h100-v5"},
    {"ncv4", "azure-nc96ads-a100-v4"},
    {"nc96ads", "azure-nc96ads-a100-v4"},
    {"ndmi300x", "mi300x-8gpu"},
    {"a2-highgpu", "gcp-a2"},
    {"a3-highgpu", "gcp-a3-high"},
    {"a3-megagpu", "gcp-a3-mega"},
    {"a3-ultragpu", "gcp-a3-ultra"},
}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_character(text[at - 1])) && (end == text.size() || !is_word_character(text[end]))) {
      return true;
    }
  }
  return false;
}

// The letters and digits that tell products apart: "nvidia h100 80gb hbm3" gives h100, 80gb, hbm3.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string text = lower_case(name);
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{" gb", "gb"},
                                 {"sxm2", "sxm"},
                                 {"sxm3", "sxm"},
                                 {"sxm4", "sxm"},
                                 {"sxm5", "sxm"},
                                 {"sxm6", "sxm"},
                                 {"hbm3e", "sxm"},
                                 {"hbm3", "sxm"},
                                 {"pci-e", "pcie"}}) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
  }
  std::string word;
  for (const char c : text + " ") {
    if (is_word_character(c)) {
      word += c;
    } else if (!word.empty()) {
      if (word != "nvidia" && word != "tesla" && word != "amd" && word != "geforce" && word != "quadro") {
        words.push_back(word);
      }
      word.clear();
    }
  }
  return words;
}

template <typename Table>
auto find_in(const Table& table, unsigned vendor, unsigned device) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& one) { return one.vendor == vendor && one.device == device; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const PciGpu* find_pci_gpu(unsigned vendor, unsigned device) {
  return find_in(kGpus, vendor, device);
}

const PciNic* find_pci_nic(unsigned vendor, unsigned device) {
  return find_in(kNics, vendor, device);
}

// Returns the product that has most words in common with the name, and its first word, which is the model.
const PciGpu* find_gpu_named(std::string_view name) {
  const std::vector<std::string> wanted = words_of(name);
  const PciGpu* best = nullptr;
  std::size_t most = 0;
  for (const PciGpu& gpu : kGpus) {
    const std::vector<std::string> words = words_of(gpu.product);
    std::size_t shared = 0;
    bool has_model = false;
    for (const std::string& word : wanted) {
      const bool is_shared = std::find(words.begin(), words.end(), word) != words.end();
      shared += is_shared ? 1 : 0;
      has_model = has_model || (is_shared && word.find_first_of("0123456789") != std::string::npos &&
                                !word.ends_with("gb") && word != "sxm");
    }
    if (has_model && shared > most) {
      best = &gpu;
      most = shared;
    }
  }
  return best;
}

bool makes_gpus(unsigned vendor) {
  return vendor == kNvidia || vendor == kAmd || vendor == kIntel;
}

std::string machine_named_in(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const std::string& name : catalog_names()) {
    if (has_word(lower, name)) return name;
  }
  for (const Hint& hint : kHints) {
    if (has_word(lower, hint.word)) return std::string(hint.machine);
  }
  return "";
}

}  // namespace tandem
