// Bounds the address space of this process, and of those that it starts, as `ulimit -v` does.
#pragma once

#include <sys/resource.h>

namespace tandem {

// Sanitizers reserve terabytes of addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasAddressLimits = false;
#else
inline constexpr bool kHasAddressLimits = true;
#endif

class AddressLimit {
 public:
  explicit AddressLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limited{bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &limited);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace tandem
