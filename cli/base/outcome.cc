#include "cli/base/outcome.h"

#include <iostream>
#include <new>

#include "cli/base/error_format.h"
#include "cli/base/exit_codes.h"
#include "cli/base/interrupt.h"
#include "cli/base/output.h"
#include "engine/launched_job.h"
#include "topologies/base/error.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

// How an action has ended: its exit code and message.
struct Outcome {
  int code = kOk;
  std::string message{};
};

Outcome failed(ExitCode code, std::string_view message) {
  return {code, error_line({.file = "", .path = "", .message = std::string(message)}, code)};
}

Outcome outcome_of(const std::function<int()>& action) {
  try {
    const int code = action();
    const std::string problem = stdout_problem();
    return problem.empty() ? Outcome{code} : failed(kRunFailed, problem);
  } catch (const Interrupted&) {
    return failed(kInterrupted, "interrupted");
  } catch (const InputError& error) {
    // Each line is "file:line:column: message", which editors and CI annotate; no prefix of ours before it.
    Outcome outcome{kBadInput};
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      outcome.message += (outcome.message.empty() ? "" : "\n") + error_line(diagnostic, kBadInput);
    }
    return outcome;
  } catch (const ImpossibleError& error) {
    return failed(kBadInput, error.what());
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

// Rank 0 reports for all processes.
void leave_job(LaunchedJob& job, Outcome& outcome) {
  const std::vector<std::string> messages = job.leave(outcome.message);
  outcome.message.clear();
  if (job.rank().index > 0) return;
  if (!messages.empty() && outcome.code == kOk) outcome.code = kRunFailed;
  for (const std::string& message : messages) {
    outcome.message += (outcome.message.empty() ? "" : "\n") + in_chosen_form(message, outcome.code);
  }
}

}  // namespace

int run_to_exit_code(const std::function<int()>& action) {
  Outcome outcome = outcome_of(action);
  LaunchedJob* const job = joined_job();
  if (job != nullptr) leave_job(*job, outcome);
  if (!outcome.message.empty()) {
    std::cerr << (errors_are_json() ? outcome.message : shown_output(outcome.message)) << std::endl;
  }
  if (job != nullptr) job->part();
  return outcome.code;
}

}  // namespace tandem
