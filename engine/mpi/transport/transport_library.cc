#include "engine/mpi/transport/transport_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "topologies/base/error.h"

namespace tandem::mpi {

std::string transport_library() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = (program.parent_path() / TANDEM_MPI_LIBRARY_FROM_PROGRAM).lexically_normal();
  for (const fs::path& path : {installed, fs::path(TANDEM_MPI_LIBRARY_BUILT)}) {
    if (fs::exists(path, error)) return path.string();
  }
  return "";
}

// RTLD_GLOBAL: the components that Open MPI loads later look for its symbols there.
Transport& open_transport() {
  const std::string file = transport_library();
  constexpr std::string_view kVersion = TANDEM_MPI_VERSION;
  if (file.empty() && kVersion.empty()) {
    throw UnavailableError(
        "engine 'mpi': this program was built without MPI (Debian: libopenmpi-dev), so it cannot be launched by mpirun "
        "or srun; tasks that TF_CONFIG describes meet over TCP without it");
  }
  if (file.empty()) {
    throw UnavailableError(
        fmt::format("engine 'mpi': {} is not beside this program's libraries", TANDEM_MPI_LIBRARY_NAME));
  }
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw UnavailableError(
        fmt::format("engine 'mpi': no MPI is found ({}); this program was built with {} and needs its library (Debian: "
                    "openmpi-bin has Open MPI, mpich has MPICH)",
                    dlerror(), TANDEM_MPI_VERSION));
  }
  auto* const open = reinterpret_cast<OpenTransport*>(dlsym(library, kOpenTransport));
  if (open == nullptr) throw UnavailableError(fmt::format("engine 'mpi': {} is of another build of tandem", file));
  std::string reason;
  Transport* const transport = open(reason);
  if (transport == nullptr) throw UnavailableError(fmt::format("engine 'mpi': MPI cannot be used: {}", reason));
  return *transport;
}

std::string found_mpi() {
  const std::string file = transport_library();
  void* const library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return "";
  std::string found;
  auto* const describe = reinterpret_cast<DescribeMpi*>(dlsym(library, kDescribeMpi));
  if (describe != nullptr) describe(found);
  return found;
}

}  // namespace tandem::mpi
