#include "tests/bad_input/child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <thread>

namespace tandem::bad_input {
namespace {

// Sanitizers reserve terabytes of addresses, and take many times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr rlim_t kMostSeconds = 120;
constexpr rlim_t kMostAddresses = RLIM_INFINITY;
#else
constexpr rlim_t kMostSeconds = 20;
// Libraries of CUDA alone map one; what is resident has a bound of its own.
constexpr rlim_t kMostAddresses = rlim_t{4} << 30;
#endif

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  }
};

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> piece{};
  for (ssize_t count = read(from, piece.data(), piece.size()); count > 0;
       count = read(from, piece.data(), piece.size())) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  close(from);
  return text;
}

[[noreturn]] void become_tandem(const std::vector<std::string>& arguments, const std::filesystem::path& folder,
                                const Pipe& out, const Pipe& err) {
  const rlimit seconds{kMostSeconds, kMostSeconds}, addresses{kMostAddresses, kMostAddresses}, core{0, 0};
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_AS, &addresses);
  setrlimit(RLIMIT_CORE, &core);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(out.ends[1], STDOUT_FILENO);
  dup2(err.ends[1], STDERR_FILENO);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);  // each reserves memory of its own
  if (chdir(folder.c_str()) != 0) _exit(126);
  std::vector<char*> words{const_cast<char*>(TANDEM_BINARY)};
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(TANDEM_BINARY, words.data());
  _exit(127);
}

}  // namespace

ChildResult run_tandem(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  const Pipe out, err;
  const pid_t child = fork();
  if (child == 0) become_tandem(arguments, folder, out, err);
  close(out.ends[1]);
  close(err.ends[1]);
  ChildResult result;
  std::thread reader([&] { result.out = read_all(out.ends[0]); });
  result.err = read_all(err.ends[0]);
  reader.join();
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
  result.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
  return result;
}

}  // namespace tandem::bad_input
