// As much of NVIDIA's management library as engine/cuda/nvml.cc asks for, about one GPU that keeps its power limit to
// itself, is hot, and has 20 processes beside the caller, of which number 7 works.
#include <unistd.h>

#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;
constexpr unsigned kOthers = 20;
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};
struct Sample {
  unsigned pid;
  unsigned long long time_us;
  unsigned sm, memory, encoder, decoder;
};
int started = 0;
int gpu = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ++started;
  return kSuccess;
}
int nvmlShutdown() {
  --started;
  return kSuccess;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::strncpy(text, "580.82.07", size);
  return started == 1 ? kSuccess : kNotSupported;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  *device = &gpu;
  return std::strcmp(bus_id, "0000:1B:00.0") == 0 ? kSuccess : kNotFound;
}
int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1755 : 2619;
  return device == &gpu ? kSuccess : kNotFound;
}
int nvmlDeviceGetMaxClockInfo(void* device, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 2619;
  return device == &gpu ? kSuccess : kNotFound;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* /*device*/, unsigned long long* reasons) {
  *reasons = 0x4 | 0x8 | 0x40;
  return kSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* /*device*/, unsigned* count, Process* processes) {
  const bool has_room = *count > kOthers;
  *count = kOthers + 1;
  if (!has_room) return kInsufficientSize;
  for (unsigned i = 0; i < kOthers; ++i) processes[i] = {i + 1, 0, 0, 0};
  processes[kOthers] = {static_cast<unsigned>(getpid()), 0, 0, 0};
  return kSuccess;
}
int nvmlDeviceGetProcessUtilization(void* /*device*/, Sample* samples, unsigned* count, unsigned long long since_us) {
  if (since_us == 0) return kNotSupported;
  *count = 3;
  samples[0] = {7, since_us + 2, 25, 0, 0, 0};
  samples[1] = {7, since_us + 1, 99, 0, 0, 0};
  samples[2] = {static_cast<unsigned>(getpid()), since_us, 70, 0, 0, 0};
  return kSuccess;
}
int nvmlDeviceGetEnforcedPowerLimit(void* /*device*/, unsigned* /*milliwatts*/) {
  return kNotSupported;
}
}
