// cuBLAS, loaded by its first call. Its 600 MB take 0.4 s to load, for which commands that compute on no GPU would
// wait.
//
// cublas_library.cc defines what the engine calls of cublas_v2.h, and passes it on: callers include that header and
// call as ever. It is a library of its own, so that another definition of the calls can take its place at link time.
#pragma once

#include <string>

namespace tandem::cuda {

class CublasLibrary {
 public:
  // The library of the version that this program was built with. Throws UnavailableError, with the loader's reason.
  static const CublasLibrary& get();

  // Throws UnavailableError where the file cannot be loaded. It is never unloaded: handles may outlive this object.
  explicit CublasLibrary(const std::string& file);

  // Throws UnavailableError where the library has no such function.
  void* address_of(const char* name) const;

 private:
  void* const handle_;
};

}  // namespace tandem::cuda
