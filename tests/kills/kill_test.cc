// Commands that write files, killed at random moments from their start to their end: by a signal that a program can
// handle, and by one that it cannot. Every file is then whole, old or new; nothing is lost that was reported; nothing
// is left that a later run stumbles over; and a signal with a handler gives the exit code of docs/exit-codes.md.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "tests/kills/kill_table.h"
#include "tests/kills/victim.h"

namespace tandem::kills {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::array kSignals = {SIGKILL, SIGTERM, SIGINT, SIGHUP};
constexpr double kMostSecondsToEnd = 20;  // on a machine that builds beside

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Kills : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "tandem-kills-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    for (const char* variable : {"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_SHA", "CI_COMMIT_SHA"}) {
      unsetenv(variable);
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string read(const std::string& name) const { return contents(folder_ / name); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  int run(const std::vector<std::string>& arguments) const { return Victim(folder_, arguments).end(0, 0).exit_code; }

  // A simulation that takes no time, whose report differs with the steps.
  void write_scenario(const std::string& name, int steps) const {
    write(name,
          "schema_version: 1\nname: small\nworkload: {kind: layers, model: layers_small, batch: 64, dtype: f32}\n"
          "strategy: {name: mirrored}\nengine: {name: sim}\ntopology: {cluster: {node: hgx-h100, workers: 1}}\n"
          "devices: {type: gpu, per_worker: 8}\nsteps: " +
              std::to_string(steps) + "\nwarmup_steps: 1\n");
  }
  void write_sweep(const std::string& name) const {
    write(name,
          "schema_version: 1\nworkload: {kind: layers, model: gpt, batch: 64, dtype: bf16, sizes: {hidden: 64, heads: "
          "4, tokens: 32, layers: 12}}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim}\ntopology: "
          "{cluster: {node: hgx-h100, workers: 2}}\ndevices: {type: gpu, workers: 1, per_worker: 4}\nsteps: 4\n"
          "warmup_steps: 1\nsweep:\n  values: {workload.batch: {from: 64, to: 142, step: 2}}\n");
  }

  // Kills `command`, which takes so long, at random moments with one signal after the other. `check` looks at the
  // files.
  void kill_often(const std::string& name, const std::vector<std::string>& command,
                  const std::function<void(int signal, const Death& death)>& check) {
    const double whole_s = Victim(folder_, command).end(0, 0).seconds;
    check(0, {});
    std::uniform_real_distribution<double> moment(0, 1.1 * whole_s);
    const auto begin = std::chrono::steady_clock::now();
    const auto is_over = [&] {
      return std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(seconds_of_a_command());
    };
    for (int round = 0; round == 0 || !is_over(); ++round) {
      for (const int signal : kSignals) {
        const double after_s = moment(random_);
        SCOPED_TRACE(fmt::format("{} after {:.4f} s, round {}", name_of_signal(signal), after_s, round));
        const Death death = Victim(folder_, command).end(signal, after_s);
        note_kill(name, signal, death);
        expect_code(signal, death);
        check(signal, death);
      }
    }
    expect_no_temporary_file(name);
  }

  void expect_code(int signal, const Death& death) const {
    EXPECT_LT(death.seconds, kMostSecondsToEnd);
    if (!death.was_sent) return;
    std::set<int> expected = ends_;
    if (signal == SIGKILL || !death.had_handler) expected.insert(128 + signal);
    if (signal != SIGKILL) expected.insert(130);
    EXPECT_TRUE(expected.contains(death.exit_code)) << death.exit_code << "\n" << read("v.err");
  }
  // A signal may come after the work.
  void ends_with(std::set<int> codes) { ends_ = std::move(codes); }

  void expect_one_of(const std::string& name, int signal, const std::string& file, const std::set<std::string>& texts) {
    if (!fs::exists(folder_ / file) && texts.contains("")) return;
    const bool is_whole = texts.contains(read(file));
    if (!is_whole) note_broken_file(name, signal);
    EXPECT_TRUE(is_whole) << file << " is neither the old nor the new one:\n" << read(file);
  }

  // The lines of a file, each a whole JSON object.
  std::vector<Json> lines_of(const std::string& name, int signal, const std::string& file) const {
    std::vector<Json> all;
    const std::string text = read(file);
    if (!text.empty() && !text.ends_with('\n')) {
      note_broken_file(name, signal);
      ADD_FAILURE() << file << " ends in a line that is cut";
    }
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      all.push_back(Json::parse(line, nullptr, false));
      if (!all.back().is_discarded()) continue;
      note_broken_file(name, signal);
      ADD_FAILURE() << "no line: " << line;
    }
    return all;
  }

  void expect_no_temporary_file(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator(folder_)) {
      EXPECT_NE(entry.path().extension(), ".tmp") << name << " has left " << entry.path();
    }
  }

  fs::path folder_;
  std::mt19937 random_{20261125};
  std::set<int> ends_ = {0};
};

TEST_F(Kills, OfASweepKeepEveryFinishedPoint) {
  write_sweep("s.yaml");
  const std::vector<std::string> command = {"sweep", "s.yaml", "-j", "2", "--json", "-o", "s.json"};
  ASSERT_EQ(run(command), 0) << read("v.err");
  const std::string whole = read("s.json"), results = "s.sweep.jsonl";
  std::set<std::string> kept;
  kill_often("sweep", command, [&](int signal, const Death&) {
    std::set<std::string> points;
    for (const Json& line : lines_of("sweep", signal, results)) points.insert(line.dump());
    for (const std::string& line : kept) {
      if (points.contains(line)) continue;
      note_lost_line("sweep", signal);
      ADD_FAILURE() << "lost: " << line;
    }
    kept = points;
    // Begins anew once all points are finished, half the time.
    if (kept.size() < 41 || random_() % 2 == 0) return;
    fs::remove(folder_ / results);
    kept.clear();
  });
  ASSERT_EQ(run(command), 0) << read("v.err");
  EXPECT_EQ(read("s.json"), whole);
}

TEST_F(Kills, OfAnUpdateLeaveTheOldOrTheNewBaseline) {
  std::set<std::string> whole;
  for (const int steps : {4, 5}) {
    write_scenario("a.yaml", steps);
    ASSERT_EQ(run({"check", "a.yaml", "--baseline", "b.json", "--update", "--always", "-q"}), 0) << read("v.err");
    whole.insert(read("b.json"));
  }
  ASSERT_EQ(whole.size(), 2U);
  int steps = 4;
  write_scenario("a.yaml", steps);
  kill_often("check --update", {"check", "a.yaml", "--baseline", "b.json", "--update", "--always", "-q"},
             [&](int signal, const Death&) {
               expect_one_of("check --update", signal, "b.json", whole);
               steps = 9 - steps;
               write_scenario("a.yaml", steps);
             });
}

TEST_F(Kills, OfACheckAppendWholeLinesOfAHistory) {
  ends_with({0, 6});
  write_scenario("a.yaml", 4);
  std::size_t lines = 0;
  kill_often("check --history", {"check", "a.yaml", "--history", "h.jsonl", "-q"}, [&](int signal, const Death& death) {
    const std::size_t now = lines_of("check --history", signal, "h.jsonl").size();
    const std::size_t reported = death.exit_code == 0 || !read("v.out").empty() ? 1 : 0;
    if (now < lines + reported) note_lost_line("check --history", signal);
    EXPECT_GE(now, lines + reported) << "a line is lost";
    EXPECT_LE(now, lines + 1);
    lines = now;
  });
}

TEST_F(Kills, OfSeveralChecksLoseNoLineOfTheirHistory) {
  ends_with({0, 6});
  write_scenario("a.yaml", 4);
  const std::string name = "4 x check --history";
  const auto command = [](const std::string& commit) {
    return std::vector<std::string>{"check", "a.yaml", "--history", "h.jsonl", "-q", "--commit", commit};
  };
  int number = 0;
  std::set<std::string> reported;
  kill_often(name, command("whole"), [&](int signal, const Death&) {
    std::vector<std::pair<std::string, std::unique_ptr<Victim>>> others;
    for (int i = 0; i < 3; ++i) {
      const std::string commit = fmt::format("c{}", ++number);
      others.emplace_back(commit, std::make_unique<Victim>(folder_, command(commit), commit));
    }
    // One of them is killed, the others end by themselves.
    const double after_s = std::uniform_real_distribution<double>(0, 1)(random_);
    for (auto& [commit, other] : others) {
      const bool is_killed = &other == &others.front().second && signal != 0;
      const Death death = other->end(is_killed ? signal : 0, after_s);
      if (is_killed) note_kill(name, signal, death);
      if (death.exit_code == 0) reported.insert(commit);
      EXPECT_TRUE(is_killed || death.exit_code == 0) << read(commit + ".err");
    }
    std::multiset<std::string> commits;
    for (const Json& line : lines_of(name, signal, "h.jsonl")) commits.insert(line.value("commit", ""));
    for (const std::string& commit : reported) {
      if (commits.count(commit) != 1) note_lost_line(name, signal);
      EXPECT_EQ(commits.count(commit), 1U) << commit;
    }
  });
}

TEST_F(Kills, OfACalibrationLeaveTheOldOrTheNewTopology) {
  const std::string log = TANDEM_SOURCE_DIR "/tests/reports/nccl_tests/good/plain.txt";
  const std::vector<std::string> command = {"calibrate", "--from", log,      "--topology", "dgx-a100",
                                            "-q",        "-o",     "m.yaml", "--report",   "r.json"};
  ASSERT_EQ(run(command), 0) << read("v.err");
  const std::string topology = read("m.yaml"), report = read("r.json");
  kill_often("calibrate --from", command, [&](int signal, const Death&) {
    expect_one_of("calibrate --from", signal, "m.yaml", {"old\n", topology});
    expect_one_of("calibrate --from", signal, "r.json", {"", report});
    write("m.yaml", "old\n");
    fs::remove(folder_ / "r.json");
  });
}

// A measurement differs each time: what it leaves is one that is read.
TEST_F(Kills, OfAMeasurementLeaveNoHalfTopology) {
  const std::string name = "calibrate --quick";
  const std::vector<std::string> command = {"calibrate", "--quick", "--devices", "1",     "--tries",
                                            "1",         "-q",      "-o",        "m.yaml"};
  std::uniform_real_distribution<double> moment(0, 2);
  for (const int signal : kSignals) {
    const double after_s = moment(random_);
    SCOPED_TRACE(fmt::format("{} after {:.4f} s", name_of_signal(signal), after_s));
    const Death death = Victim(folder_, command).end(signal, after_s);
    note_kill(name, signal, death);
    expect_code(signal, death);
    if (!fs::exists(folder_ / "m.yaml")) continue;
    const bool is_read = run({"topology", "convert", "m.yaml"}) == 0;
    if (!is_read) note_broken_file(name, signal);
    EXPECT_TRUE(is_read) << read("v.err");
  }
  expect_no_temporary_file(name);
}

TEST_F(Kills, OfARunAndOfAReportLeaveNoHalfPageOrTrace) {
  write_scenario("a.yaml", 30);
  const std::vector<std::string> command = {"run",    "a.yaml", "-q",     "--json",  "-o",
                                            "r.json", "--html", "p.html", "--trace", "t.json"};
  ASSERT_EQ(run(command), 0) << read("v.err");
  std::map<std::string, std::string> whole;
  for (const char* file : {"r.json", "p.html", "t.json"}) whole[file] = read(file);
  kill_often("run -o --html --trace", command, [&](int signal, const Death&) {
    for (const auto& [file, text] : whole) {
      expect_one_of("run -o --html --trace", signal, file, {"", text});
      if (random_() % 2 == 0) fs::remove(folder_ / file);
    }
  });
  write("stored.json", whole["r.json"]);
  const std::vector<std::string> shown = {"report", "stored.json", "-q", "-o", "r.txt"};
  const std::vector<std::string> page = {"report", "stored.json", "-q", "--html", "r.html"};
  ASSERT_EQ(run(shown), 0) << read("v.err");
  ASSERT_EQ(run(page), 0) << read("v.err");
  const std::string text = read("r.txt"), html = read("r.html");
  kill_often("report -o", shown, [&](int signal, const Death&) {
    expect_one_of("report -o", signal, "r.txt", {"old\n", text});
    write("r.txt", "old\n");
  });
  kill_often("report --html", page, [&](int signal, const Death&) {
    expect_one_of("report --html", signal, "r.html", {"", html});
    fs::remove(folder_ / "r.html");
  });
}

}  // namespace
}  // namespace tandem::kills
