// Ranks that are killed at random moments, from before they are programs until they are in the middle of the run: the
// job ends soon, says which rank it was, and leaves neither a process nor half a file.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "tests/kills/kill_table.h"
#include "tests/mpi/mpi_testing.h"

namespace tandem {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

const std::string kWithServers = TANDEM_SOURCE_DIR "/scenarios/examples/digits-parameter-server.yaml";
constexpr int kSeed = 20261125;
constexpr double kMostSecondsToEnd = 60;  // on a machine that tests and builds beside
constexpr double kLatest_s = 4;           // long after the first step

struct Kill {
  int ranks = 0, rank = 0;
  int signal = 0;
  double after_s = 0;

  std::string text() const {
    return fmt::format("(sleep {:.3f}; kill -{} $$) &", after_s, kills::name_of_signal(signal));
  }
};

class KilledRanks : public MpiCommand {
 protected:
  // Kills with each signal in turn until the time is over, 2 and 4 ranks.
  template <typename Launch>
  void kill_often(const Launch& launch) {
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::duration<double> time(2 * kills::seconds_of_a_command());
    for (int number = 0; number < 4 || std::chrono::steady_clock::now() - begin < time; ++number) {
      Kill kill{.ranks = number % 2 == 0 ? 2 : 4,
                .signal = std::array{SIGKILL, SIGTERM, SIGINT, SIGHUP}.at(number % 4)};
      kill.rank = std::uniform_int_distribution<int>(0, kill.ranks - 1)(random_);
      kill.after_s = std::uniform_real_distribution<double>(0.05, kLatest_s)(random_);
      SCOPED_TRACE(fmt::format("{} of {} ranks, {}", kill.rank, kill.ranks, kill.text()));
      std::filesystem::remove(folder_ / "processes");
      launch(kill);
    }
  }

  void note(const std::string& name, const Kill& kill, const Ended& ended) {
    EXPECT_LT(ended.seconds - kill.after_s, kMostSecondsToEnd);
    kills::note_kill(name, kill.signal,
                     {.exit_code = ended.exit_code, .was_sent = true, .seconds = ended.seconds - kill.after_s});
    expect_no_process_left();
  }
  // Ranks that were to start may never have.
  void expect_no_process_left() const {
    std::istringstream ids(read("processes"));
    for (pid_t id = 0; ids >> id;) {
      for (int i = 0; i < 100 && ::kill(id, 0) == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_NE(::kill(id, 0), 0) << "process " << id << " is still there";
    }
  }

  // The values of all points in the files of results; each of their lines is whole.
  std::set<std::string> finished_points(int signal) const {
    std::set<std::string> points;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("s.sweep.jsonl")) continue;
      std::istringstream in(read(name));
      for (std::string line; std::getline(in, line);) {
        const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
        const bool is_whole = json.is_object() && !in.eof();
        if (!is_whole) kills::note_broken_file("sweep over ranks", signal);
        EXPECT_TRUE(is_whole) << name << ": " << line;
        if (is_whole && json.contains("values") && json.value("state", "") != "lost")
          points.insert(json["values"].dump());
      }
    }
    return points;
  }

  std::mt19937 random_{kSeed};
};

TEST_F(KilledRanks, EndTheirJobAndAreNamed) {
  for (const auto& [name, scenario] : {std::pair{"run, mirrored", kDigits}, std::pair{"run, servers", kWithServers}}) {
    kill_often([&, name = name, scenario = scenario](const Kill& kill) {
      const Ended ended = long_run_in_which(kill.ranks, kill.rank, kill.text(), scenario);
      note(name, kill, ended);
      EXPECT_NE(ended.exit_code, 0);
      // A rank that has not joined the others is named by mpirun: [[12345,1],2].
      EXPECT_THAT(ended.err,
                  AnyOf(HasSubstr(fmt::format("rank {}", kill.rank)), HasSubstr(fmt::format(",1],{}]", kill.rank))));
      EXPECT_FALSE(exists("report.json"));
    });
  }
}

TEST_F(KilledRanks, OfASweepLoseNoFinishedPoint) {
  std::ofstream(folder_ / "s.yaml")
      << "schema_version: 1\nworkload: {kind: layers, model: gpt, batch: 64, dtype: bf16, sizes: {hidden: 64, heads: "
         "4, "
         "tokens: 32, layers: 24}}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim}\ntopology: {cluster: "
         "{node: hgx-h100, workers: 2}}\ndevices: {type: gpu, workers: 1, per_worker: 4}\nsteps: 6\nwarmup_steps: "
         "1\nsweep:\n  values: {workload.batch: {from: 64, to: 222, step: 2}}\n";
  const std::string whole = tandem("sweep s.yaml --json --no-results -q").out;
  ASSERT_NE(whole, "");
  std::set<std::string> kept;
  kill_often([&](const Kill& kill) {
    const std::string sweep = "exec $TANDEM sweep s.yaml -q -j 1 --wait 1 -o shown.txt";
    const Ended ended =
        shell(ranks(kill.ranks, fmt::format("if [ $RANK = {} ]; then {}\nfi; {}", kill.rank, kill.text(), sweep)));
    note("sweep over ranks", kill, ended);
    const std::set<std::string> points = finished_points(kill.signal);
    for (const std::string& point : kept) {
      if (!points.contains(point)) kills::note_lost_line("sweep over ranks", kill.signal);
      EXPECT_TRUE(points.contains(point)) << point;
    }
    kept = points;
  });
  EXPECT_EQ(tandem("sweep s.yaml --json -q").out, whole);
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) EXPECT_NE(entry.path().extension(), ".tmp");
}

}  // namespace
}  // namespace tandem
