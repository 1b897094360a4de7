// Jobs drawn at random, each run in a child process: what must hold for every run holds, and nothing crashes. A job
// that fails is shrunk, and the message has the simplest one.
//
// TANDEM_DRAWN_JOBS=N draws N jobs for each test instead of the few of every day, and TANDEM_DRAWN_SEED=S begins with
// another seed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "tests/fuzz/drawn_points.h"
#include "tests/fuzz/run_checks.h"
#include "topologies/base/error.h"

namespace tandem::fuzz {
namespace {

using Check = std::function<std::string(Draws&)>;

// What a job's child process says in its first byte: what holds, is refused, or does not hold.
constexpr char kHolds = '+', kRefused = '-', kFails = '!';

std::string answer_of(const Check& check, const std::string& bytes) {
  try {
    Draws draws(bytes);
    const std::string problem = check(draws);
    return problem.empty() ? std::string(1, kHolds) : kFails + problem;
  } catch (const Error& error) {
    return kRefused + std::string(error.what());
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 1; count > 0;) {
    count = read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

// In a child process, because a crash must not end this one, and a simulation needs a process that has not run others.
std::string answer_of_child(const Check& check, const std::string& bytes) {
  constexpr unsigned kMostSeconds = 60;
  std::array<int, 2> ends{};
  std::fflush(nullptr);  // a copy of what is not yet written would be written by the child, too
  if (pipe(ends.data()) != 0) throw Error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    alarm(kMostSeconds);
    close(ends[0]);
    const std::string answer = answer_of(check, bytes);
    const bool is_written = write(ends[1], answer.data(), answer.size()) == static_cast<ssize_t>(answer.size());
    std::_Exit(is_written ? 0 : 1);
  }
  close(ends[1]);
  std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !answer.empty()) return answer;
  const std::string end = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
  return kFails + ("it ended by " + end);
}

int from_environment(const char* name, int otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoi(value);
}

// Returns how many of the jobs ran.
int expect_all_hold(const Check& check, const std::function<std::string(Draws&)>& text, int jobs) {
  constexpr std::size_t kBytes = 128;
  jobs = from_environment("TANDEM_DRAWN_JOBS", jobs);
  const int first = from_environment("TANDEM_DRAWN_SEED", 1);
  int ran = 0;
  const auto fails = [&](const std::string& bytes) { return answer_of_child(check, bytes).front() == kFails; };
  for (int seed = first; seed < first + jobs; ++seed) {
    const std::string bytes = bytes_of_seed(static_cast<std::uint32_t>(seed), kBytes);
    const std::string answer = answer_of_child(check, bytes);
    ran += answer.front() == kHolds ? 1 : 0;
    if (answer.front() != kFails) continue;
    const std::string simplest = shrunk(bytes, fails);
    Draws draws(simplest);
    ADD_FAILURE() << "seed " << seed << ": " << answer.substr(1)
                  << "\nthe simplest such job: " << answer_of_child(check, simplest).substr(1) << "\n"
                  << text(draws);
  }
  std::cout << ran << " of " << jobs << " jobs ran, the others were refused or failed\n";
  return ran;
}

TEST(DrawnRuns, ScenariosHoldWhatEveryRunMust) {
  const auto check = [](Draws& draws) { return problem_of_scenario(drawn_scenario(draws)); };
  EXPECT_GT(expect_all_hold(check, drawn_scenario, 120), 0);
}

TEST(DrawnRuns, PointsTakeNoLessThanTheirBounds) {
  const auto check = [](Draws& draws) { return problem_of_point(drawn_point(draws)); };
  EXPECT_GT(expect_all_hold(check, drawn_point, 150), 0);
}

TEST(DrawnRuns, CollectivesHoldWhatEveryRunMust) {
  const auto check = [](Draws& draws) { return problem_of_collective(drawn_collective(draws)); };
  EXPECT_GT(expect_all_hold(
                check, [](Draws& draws) { return drawn_collective(draws).text(); }, 80),
            0);
}

TEST(DrawnRuns, SweepsHoldWhatEveryRunMust) {
  const auto check = [](Draws& draws) { return problem_of_sweep(drawn_sweep(draws)); };
  EXPECT_GT(expect_all_hold(check, drawn_sweep, 12), 0);
}

// What shrinking is worth, on a failure that needs two bytes of many.
TEST(Shrinking, KeepsWhatIsNeeded) {
  const auto has_both = [](const std::string& bytes) {
    const auto first = bytes.find('\7');
    return first != std::string::npos && bytes.find('\5', first) != std::string::npos;
  };
  std::string bytes = bytes_of_seed(1, 200);
  bytes[40] = '\7';
  bytes[160] = '\5';
  EXPECT_EQ(shrunk(bytes, has_both), "\7\5");
}

}  // namespace
}  // namespace tandem::fuzz
