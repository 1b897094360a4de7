#include "cli/base/nccl_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace tandem {

std::string unread_nccl_variables(const Environment& environment, const std::map<std::string, std::string>& stated) {
  std::vector<std::string> unread;
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_NVLS_ENABLE",
                           "NCCL_COLLNET_ENABLE"}) {
    if (environment.get(name) && !stated.contains(name)) unread.emplace_back(name);
  }
  if (unread.empty()) return "";
  return fmt::format("note: {} in the environment {} not read; use --nccl NAME=VALUE\n", fmt::join(unread, ", "),
                     unread.size() == 1 ? "is" : "are");
}

}  // namespace tandem
