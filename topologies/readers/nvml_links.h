// The NVLinks of this machine's GPUs, as the driver's library NVML reports them where it is installed.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct NvmlLinks {
  std::string bus{}, peer{};  // "0000:c1:00.0" of the GPU and of what its links go to
  double bytes_per_s = 0;     // of all links between them
};

// Returns nothing where there is no driver, no GPU or no active link. Loads the library at run time.
std::vector<NvmlLinks> nvml_links();

}  // namespace tandem
