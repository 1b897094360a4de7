#include "engine/cuda/cuda_description.h"

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <array>

#include "engine/cpu/processor.h"
#include "engine/cuda/cuda_engine_info.h"
#include "engine/cuda/device/cuda_error.h"

namespace tandem {
namespace cuda {
namespace {

cudaDeviceProp properties_of(int gpu) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties", fmt::format("GPU {}", gpu));
  return properties;
}

// Joins texts of several GPUs: "GPU 0: ...; GPU 1: ...", or the text alone where all are equal.
class PerGpu {
 public:
  void add(const std::string& text) { texts_.push_back(text); }
  void store(Settings& settings, const std::string& name) const {
    bool all_equal = true, some = false;
    for (const std::string& text : texts_) {
      all_equal = all_equal && text == texts_.front();
      some = some || !text.empty();
    }
    if (!some) return;
    std::string joined = all_equal ? texts_.front() : "";
    for (std::size_t gpu = 0; !all_equal && gpu < texts_.size(); ++gpu) {
      joined += fmt::format("{}GPU {}: {}", gpu == 0 ? "" : "; ", gpu, texts_[gpu]);
    }
    settings[name] = joined;
  }

 private:
  std::vector<std::string> texts_;
};

std::string pci_bus_id(int gpu) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), static_cast<int>(text.size()), gpu), "cudaDeviceGetPCIBusId");
  return text.data();
}

std::optional<unsigned> clock_mhz(cudaDeviceAttr attribute, int gpu) {
  int kilohertz = 0;
  if (cudaDeviceGetAttribute(&kilohertz, attribute, gpu) == cudaSuccess && kilohertz > 0) {
    return static_cast<unsigned>(kilohertz / 1000);
  }
  cudaGetLastError();  // forget it: nothing depends on it
  return std::nullopt;
}

// Prefers NVML's clocks; CUDA reports those of the product.
GpuState most_clocks(int gpu, const Nvml* nvml) {
  GpuState state = nvml != nullptr ? nvml->state_of(pci_bus_id(gpu)) : GpuState{};
  state.sm_mhz.reset();
  state.memory_mhz.reset();
  if (!state.sm_most_mhz) state.sm_most_mhz = clock_mhz(cudaDevAttrClockRate, gpu);
  if (!state.memory_most_mhz) state.memory_most_mhz = clock_mhz(cudaDevAttrMemoryClockRate, gpu);
  return state;
}

void add_gpus(int gpus, const Nvml* nvml, Settings& settings) {
  std::string names;
  PerGpu clocks, limits;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const cudaDeviceProp properties = properties_of(gpu);
    names += fmt::format("{}{} (compute capability {}.{})", names.empty() ? "" : ", ", properties.name,
                         properties.major, properties.minor);
    const GpuState state = most_clocks(gpu, nvml);
    clocks.add(clocks_text(state));
    limits.add(state.power_limit_mw ? fmt::format("{} W", *state.power_limit_mw / 1000) : "");
  }
  settings["gpus"] = names;
  clocks.store(settings, "gpu_most_clocks");
  limits.store(settings, "gpu_power_limit");
}

std::string cublas_version() {
  int major = 0, minor = 0, patch = 0;
  check(cublasGetProperty(MAJOR_VERSION, &major), "cublasGetProperty");
  check(cublasGetProperty(MINOR_VERSION, &minor), "cublasGetProperty");
  check(cublasGetProperty(PATCH_LEVEL, &patch), "cublasGetProperty");
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void add_versions(const Nvml* nvml, Settings& settings) {
  int driver = 0, runtime = 0, nccl = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(ncclGetVersion(&nccl), "ncclGetVersion");
  settings["cuda_driver"] = cuda_version(driver);
  settings["cuda_runtime"] = cuda_version(runtime);
  settings["cublas"] = cublas_version();
  settings["nccl"] = nccl_version(nccl);
  const std::string release = nvml != nullptr ? nvml->driver_version() : "";
  if (!release.empty()) settings["gpu_driver"] = release;
}

int note_file(dl_phdr_info* info, std::size_t /*size*/, void* search) {
  auto& [start, found] = *static_cast<std::pair<std::string_view, std::string>*>(search);
  const std::string_view path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (path.substr(path.rfind('/') + 1).starts_with(start)) found = path;
  return found.empty() ? 0 : 1;
}

// Records the environment variables that the libraries read, because they decide the times.
void add_environment(Settings& settings) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    const bool counts = text.starts_with("NCCL_") || text.starts_with("CUDA_") || text.starts_with("CUBLAS_") ||
                        text.starts_with("NVIDIA_TF32_OVERRIDE=");
    if (counts && equals != text.npos) settings.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
}

std::vector<int> peers_of(int gpu, int gpus) {
  std::vector<int> peers;
  for (int peer = 0; peer < gpus; ++peer) {
    int can = 0;
    if (peer != gpu && cudaDeviceCanAccessPeer(&can, gpu, peer) == cudaSuccess && can != 0) peers.push_back(peer);
  }
  return peers;
}

}  // namespace

std::string loaded_file(std::string_view start) {
  std::pair<std::string_view, std::string> search{start, ""};
  dl_iterate_phdr(note_file, &search);
  return search.second;
}

std::vector<Hardware> machine_hardware(int gpus) {
  std::vector<Hardware> hardware = {cpu::this_processor()};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const cudaDeviceProp properties = properties_of(gpu);
    hardware.push_back({.type = DeviceType::gpu,
                        .name = properties.name,
                        .cores = 1,
                        .memory_bytes = static_cast<double>(properties.totalGlobalMem),
                        .links = peers_of(gpu, gpus)});
  }
  return hardware;
}

Settings describe_machine(int gpus, const Nvml* nvml) {
  Settings settings;
  add_gpus(gpus, nvml, settings);
  add_versions(nvml, settings);
  add_environment(settings);
  return settings;
}

std::vector<std::string> bus_ids(int gpus) {
  std::vector<std::string> ids;
  for (int gpu = 0; gpu < gpus; ++gpu) ids.push_back(pci_bus_id(gpu));
  return ids;
}

void add_clocks(const std::vector<std::string>& texts, Settings& settings) {
  PerGpu clocks;
  for (const std::string& text : texts) clocks.add(text);
  clocks.store(settings, "gpu_clocks");
}

std::string cuda_version(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string nccl_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace cuda

LibraryVersions cuda_libraries() {
  try {
    cuda::cublas_version();  // loads the library, so that its file is known
  } catch (const Error&) {
    // It is missing, so that no file is named.
  }
  LibraryVersions libraries{{"cuda", cuda::cuda_version(CUDART_VERSION)},
                            {"cublas", fmt::format("{}.{}.{}", CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH)},
                            {"nccl", cuda::nccl_version(NCCL_VERSION_CODE)}};
  for (const auto& [name, file] :
       {std::pair{"cuda_file", "libcudart.so"}, {"cublas_file", "libcublas.so"}, {"nccl_file", "libnccl.so"}}) {
    if (std::string path = cuda::loaded_file(file); !path.empty()) libraries.emplace_back(name, std::move(path));
  }
  return libraries;
}

}  // namespace tandem
