#include "engine/mpi/messages/job_error.h"

#include "engine/task.h"

namespace tandem::mpi {

void JobError::rethrow() const {
  switch (kind) {
    case Kind::run:
      throw RunError(text);
    case Kind::deadlock:
      throw DeadlockError(text);
    case Kind::deadline:
      throw DeadlineExceededError(text);
    case Kind::argument:
      throw InvalidArgumentError(text);
    case Kind::usage:
      throw UsageError(text);
    case Kind::unavailable:
      throw UnavailableError(text);
    case Kind::lost:
      throw LostRankError(text, rank);
  }
  TANDEM_UNREACHABLE("an error of no kind");
}

std::exception_ptr JobError::exception() const {
  try {
    rethrow();
  } catch (...) {
    return std::current_exception();
  }
}

std::optional<JobError> job_error_of(const std::exception_ptr& error) {
  using Kind = JobError::Kind;
  if (!error) return std::nullopt;
  try {
    std::rethrow_exception(error);
  } catch (const RunStopped&) {
    return std::nullopt;
  } catch (const DeadlockError& deadlock) {
    return JobError{Kind::deadlock, deadlock.what()};
  } catch (const DeadlineExceededError& deadline) {
    return JobError{Kind::deadline, deadline.what()};
  } catch (const InvalidArgumentError& argument) {
    return JobError{Kind::argument, argument.what()};
  } catch (const UsageError& usage) {
    return JobError{Kind::usage, usage.what()};
  } catch (const LostRankError& lost) {
    return JobError{Kind::lost, lost.what(), lost.rank()};
  } catch (const UnavailableError& unavailable) {
    return JobError{Kind::unavailable, unavailable.what()};
  } catch (const std::exception& other) {
    return JobError{Kind::run, other.what()};
  } catch (...) {
    return JobError{Kind::run, "an exception of unknown type"};
  }
}

void put_error(ByteWriter& bytes, const std::optional<JobError>& error) {
  bytes.put(error.has_value());
  if (error) bytes.put(error->kind).put(error->rank).put_text(error->text);
}

std::optional<JobError> get_error(ByteReader& bytes) {
  if (!bytes.get<bool>()) return std::nullopt;
  JobError error;
  error.kind = bytes.get<JobError::Kind>();
  error.rank = bytes.get<int>();
  error.text = bytes.get_text();
  return error;
}

}  // namespace tandem::mpi
