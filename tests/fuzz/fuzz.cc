// What libFuzzer calls: the target whose name TANDEM_FUZZ_TARGET has. One program for all of them, since linking each
// takes as long as running it.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"
#include "topologies/base/error.h"

namespace {

const tandem::fuzz::Target* chosen_target() {
  const char* name = std::getenv("TANDEM_FUZZ_TARGET");
  const tandem::fuzz::Target* target = name == nullptr ? nullptr : tandem::fuzz::find_target(name);
  if (target != nullptr) return target;
  std::fputs("TANDEM_FUZZ_TARGET must be one of", stderr);
  for (const tandem::fuzz::Target& known : tandem::fuzz::targets()) std::fprintf(stderr, " %s", known.name);
  std::fputs("\n", stderr);
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const tandem::fuzz::Target* const target = chosen_target();
  try {
    target->read({reinterpret_cast<const char*>(data), size});
  } catch (const tandem::Error&) {
    // Refused, as it should be.
  }
  return 0;
}
