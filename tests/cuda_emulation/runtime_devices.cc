// The runtime's calls about devices, versions and errors.
#include <cstdio>
#include <map>

#include "tests/cuda_emulation/gpus.h"

using namespace tandem::emulation;

cudaError_t cudaGetDeviceCount(int* count) {
  if (const int error = injected(__func__)) return noted(static_cast<cudaError_t>(error));
  *count = machine().gpus;
  return machine().gpus > 0 ? cudaSuccess : noted(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = current_gpu();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal) {
  if (const int error = injected(__func__)) return noted(static_cast<cudaError_t>(error));
  if (!is_gpu(ordinal)) return noted(cudaErrorInvalidDevice);
  use_gpu(ordinal);
  return noted(gpu(ordinal).failure);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (!is_gpu(ordinal)) return noted(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "emulated GPU");
  properties->totalGlobalMem = machine().memory_bytes;
  properties->multiProcessorCount = 1;
  properties->pciBusID = ordinal;
  return cudaSuccess;
}

// Clocks, in kHz, of no GPU in particular.
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (!is_gpu(ordinal)) return noted(cudaErrorInvalidDevice);
  if (attribute != cudaDevAttrClockRate && attribute != cudaDevAttrMemoryClockRate) return noted(cudaErrorInvalidValue);
  *value = 1'000'000;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int ordinal) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (!is_gpu(ordinal)) return noted(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", ordinal);
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return noted(static_cast<cudaError_t>(injected(__func__)));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return noted(static_cast<cudaError_t>(injected(__func__)));
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  if (const cudaError_t error = entered(__func__)) return error;
  if (!is_gpu(ordinal) || !is_gpu(peer)) return noted(cudaErrorInvalidDevice);
  *can = ordinal != peer && machine().peers_reach ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return take_last_error();
}

cudaError_t cudaPeekAtLastError() {
  return last_error();
}

namespace {

struct ErrorTexts {
  const char *name, *text;
};

const ErrorTexts& texts_of(cudaError_t error) {
  static const std::map<cudaError_t, ErrorTexts> kTexts{
      {cudaSuccess, {"cudaSuccess", "no error"}},
      {cudaErrorInvalidValue, {"cudaErrorInvalidValue", "invalid argument"}},
      {cudaErrorMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
      {cudaErrorInvalidConfiguration, {"cudaErrorInvalidConfiguration", "invalid configuration argument"}},
      {cudaErrorInsufficientDriver,
       {"cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"}},
      {cudaErrorNoDevice, {"cudaErrorNoDevice", "no CUDA-capable device is detected"}},
      {cudaErrorInvalidDevice, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
      {cudaErrorInvalidResourceHandle, {"cudaErrorInvalidResourceHandle", "invalid resource handle"}},
      {cudaErrorIllegalState, {"cudaErrorIllegalState", "the operation cannot be performed in the present state"}},
      {cudaErrorNotReady, {"cudaErrorNotReady", "device not ready"}},
      {cudaErrorIllegalAddress, {"cudaErrorIllegalAddress", "an illegal memory access was encountered"}},
      {cudaErrorLaunchFailure, {"cudaErrorLaunchFailure", "unspecified launch failure"}},
      {cudaErrorNotSupported, {"cudaErrorNotSupported", "operation not supported"}},
      {cudaErrorStreamCaptureUnsupported,
       {"cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"}},
      {cudaErrorStreamCaptureInvalidated,
       {"cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"}},
      {cudaErrorStreamCaptureUnmatched,
       {"cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"}},
      {cudaErrorStreamCaptureUnjoined, {"cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"}},
      {cudaErrorStreamCaptureIsolation,
       {"cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"}},
      {cudaErrorCapturedEvent,
       {"cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"}},
      {cudaErrorStreamCaptureWrongThread,
       {"cudaErrorStreamCaptureWrongThread",
        "attempt to terminate a thread-local capture sequence from another thread"}}};
  static const ErrorTexts kUnknown{"unrecognized error code", "unrecognized error code"};
  const auto found = kTexts.find(error);
  return found == kTexts.end() ? kUnknown : found->second;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  return texts_of(error).text;
}

const char* cudaGetErrorName(cudaError_t error) {
  return texts_of(error).name;
}
