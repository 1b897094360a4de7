// As much of NVIDIA's management library as engine/cuda/nvml.cc asks for, about one GPU that keeps its power limit to
// itself.
#include <cstring>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6;
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
int nvmlDeviceGetEnforcedPowerLimit(void* /*device*/, unsigned* /*milliwatts*/) {
  return kNotSupported;
}
}
