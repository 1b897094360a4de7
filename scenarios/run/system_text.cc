#include "scenarios/run/system_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace tandem {
namespace {

std::string line_of(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Whole GiB: the kernel keeps a little, and not always the same, for itself.
std::string memory_text() {
  std::ifstream in("/proc/meminfo");
  std::string name;
  double kib = 0;
  if (!(in >> name >> kib) || name != "MemTotal:" || kib <= 0) return "";
  constexpr double kKibOfGib = 1 << 20;
  return fmt::format("{:.0f} GiB", std::max(1.0, std::round(kib / kKibOfGib)));
}

// Returns an empty text on a machine that is not virtual.
std::string hypervisor_text() {
#ifdef __x86_64__
  constexpr unsigned kHypervisorBit = 1U << 31;
  constexpr unsigned kVendorLeaf = 0x40000000;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kHypervisorBit) == 0) return "";
  __cpuid(kVendorLeaf, a, b, c, d);
  std::array<char, 13> vendor{};
  const std::array<unsigned, 3> words = {b, c, d};
  std::memcpy(vendor.data(), words.data(), sizeof(words));
  const std::array<std::pair<std::string_view, std::string_view>, 5> known = {{{"KVMKVMKVM", "KVM"},
                                                                               {"Microsoft Hv", "Hyper-V"},
                                                                               {"VMwareVMware", "VMware"},
                                                                               {"XenVMMXenVMM", "Xen"},
                                                                               {"TCGTCGTCGTCG", "QEMU"}}};
  const auto* const found =
      std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == vendor.data(); });
  return found != known.end() ? std::string(found->second) : "a virtual machine";
#else
  return "";
#endif
}

// "Linux 6.1"
std::string kernel_text() {
  utsname name{};
  if (uname(&name) != 0) return "";
  const std::string release = name.release;
  const std::size_t minor = release.find('.');
  const std::size_t end = minor == std::string::npos ? minor : release.find_first_not_of("0123456789", minor + 1);
  return fmt::format("{} {}", name.sysname, release.substr(0, end));
}

// Returns "OpenBLAS 0.3.21 Zen" for "OpenBLAS 0.3.21 DYNAMIC_ARCH ..., core Zen, 1 thread".
std::string blas_text(const std::map<std::string, std::string>& settings) {
  const auto blas = settings.find("blas");
  if (blas == settings.end()) return "";
  std::istringstream words(blas->second);
  std::string name, version;
  words >> name >> version;
  constexpr std::string_view kCore = ", core ";
  const std::size_t core = blas->second.find(kCore);
  std::string text = fmt::format("{} {}", name, version);
  if (core == std::string::npos) return text;
  const std::size_t begin = core + kCore.size();
  return text + " " + blas->second.substr(begin, blas->second.find(',', begin) - begin);
}

}  // namespace

std::string system_text(const std::map<std::string, std::string>& settings) {
  std::vector<std::string> parts = {memory_text(), line_of("/sys/class/dmi/id/product_name"), hypervisor_text(),
                                    kernel_text(), blas_text(settings)};
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace tandem
