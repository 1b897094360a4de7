// Describes the system below a measured run.
#pragma once

#include <map>
#include <string>

namespace tandem {

// Returns what tells two machines with equal processors apart, as far as the system says: the memory, the hypervisor
// and the model of a virtual machine, the kernel without its patch level, and the library for matrix products among the
// `settings` of the run. "24 GiB, KVM, Linux 6.1, OpenBLAS 0.3.21 Zen"
std::string system_text(const std::map<std::string, std::string>& settings);

}  // namespace tandem
