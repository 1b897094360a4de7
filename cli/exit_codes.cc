#include "cli/exit_codes.h"

#include <iostream>
#include <new>

#include "cli/interrupt.h"
#include "cli/output.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

int failed(ExitCode code, std::string_view message) {
  std::cerr << "tandem: " << message << std::endl;
  return code;
}

}  // namespace

int run_to_exit_code(const std::function<int()>& action) {
  try {
    return action();
  } catch (const Interrupted&) {
    return failed(kInterrupted, "interrupted");
  } catch (const InputError& error) {
    // Each line is "file:line:column: message", which editors and CI annotate; no prefix of ours before it.
    for (const Diagnostic& diagnostic : error.diagnostics()) std::cerr << diagnostic.text() << "\n";
    std::cerr << std::flush;
    return kBadInput;
  } catch (const UnavailableError& error) {
    return failed(kUnavailable, error.what());
  } catch (const std::bad_alloc&) {
    return failed(kRunFailed, "out of memory");
  } catch (const std::exception& error) {
    // The engine may wrap what the interrupted program threw.
    if (interrupt_requested()) return failed(kInterrupted, "interrupted");
    return failed(kRunFailed, error.what());
  }
}

}  // namespace tandem
