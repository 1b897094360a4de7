// The files of histories.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/reports/history_testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class HistoryFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-history-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file() const { return folder_ / "history.jsonl"; }
  std::string text() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  // The message of reading the file, without its name.
  std::string problem() const {
    try {
      read_history(file());
    } catch (const InputError& error) {
      std::string message = error.what();
      for (std::size_t at = 0; (at = message.find(file().string())) != std::string::npos;) {
        message.erase(at, file().string().size());
      }
      return message;
    }
    return "";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(HistoryFile, GivesBackWhatWasAppended) {
  EXPECT_TRUE(read_history(file()).empty()) << "there is none";
  HistoryLaunch accepted = launch_of(2'000'000);
  accepted.accepted = accepted.disturbed = true;
  accepted.verdict = Verdict::improved;
  append_history(file(), std::vector{launch_of(1'000'000), accepted});
  HistoryLaunch simulated = launch_of(3'000'000);
  simulated.exact = true;
  append_history(file(), std::vector{simulated});
  const auto history = read_history(file());
  ASSERT_EQ(history.size(), 3U);
  EXPECT_TRUE(history[0].is_of(launch_of(1)));
  EXPECT_EQ(history[0].commit, "0123456789abcdef");
  EXPECT_EQ(history[0].date, "2026-11-22T12:00:00Z");
  EXPECT_EQ(history[0].step_time.samples, 9);
  EXPECT_FALSE(history[0].accepted);
  EXPECT_TRUE(history[1].accepted);
  EXPECT_TRUE(history[1].disturbed);
  EXPECT_EQ(history[1].verdict, Verdict::improved);
  EXPECT_EQ(history[2].step_time.median, 3'000'000);
  EXPECT_FALSE(history[1].exact);
  EXPECT_TRUE(history[2].exact);
}

TEST_F(HistoryFile, LosesNothingWhenSeveralWriteAtOnce) {
  constexpr int kWriters = 8, kLines = 50;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < kLines; ++i) {
        HistoryLaunch launch = launch_of(1000 + writer);
        launch.commit = std::string(20000, static_cast<char>('a' + writer));  // longer than one write of a stream
        append_history(file(), std::vector{launch});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::map<Nanoseconds, int> lines;
  for (const HistoryLaunch& launch : read_history(file())) ++lines[launch.step_time.median];
  for (int writer = 0; writer < kWriters; ++writer) EXPECT_EQ(lines[1000 + writer], kLines);
}

TEST_F(HistoryFile, SaysWhichLineIsWrong) {
  append_history(file(), std::vector{launch_of(1)});
  const std::string line = text();
  const auto with = [&line](const std::string& what, const std::string& other) {
    std::string changed = line;
    return changed.replace(changed.find(what), what.size(), other);
  };
  write(line + line.substr(0, 40));
  EXPECT_EQ(problem(), ":2:1: is cut: it does not end in a newline; remove the line");
  write(line + "hello\n");
  EXPECT_EQ(problem(), ":2:1: is no line of a history, as `tandem check --history` writes it");
  write(line + "{\"launch\",}\n");
  EXPECT_EQ(problem(), ":2:10: expected ':' after a key, found ','");
  write("<<<<<<< HEAD\n" + line + "=======\n" + line + ">>>>>>> main\n");
  EXPECT_THAT(problem(), HasSubstr(":1:1: is a mark of a merge that git could not do; remove it"));
  EXPECT_THAT(problem(), HasSubstr(":3:1: is a mark of a merge"));
  EXPECT_THAT(problem(), HasSubstr(":5:1: is a mark of a merge"));
  write(with("\"median\":1", "\"median\":NaN"));
  EXPECT_THAT(problem(), HasSubstr("'NaN' is no number of JSON"));
  write(with("\"median\":1", "\"median\":null"));
  const auto place = [&](const std::string& value) { return fmt::format(":1:{}: ", text().find(value) + 1); };
  EXPECT_THAT(problem(), HasSubstr(place("null") + "step_time_ns.median: expected a whole number"));
  write(with("\"median\":1", "\"median\":0"));
  EXPECT_EQ(problem(), place("0,\"min\"") + "step_time_ns.median: must be greater than 0");
  write(with("\"schema_version\":1", "\"schema_version\":7"));
  EXPECT_EQ(problem(), place("7,") + "schema_version: version 7 is not known; this Tandem reads version 1");
  write(with("\"launch\"", "\"report\""));
  EXPECT_EQ(problem(), ":1:1: is no history; `tandem check --history` begins one if there is no such file");
  write(with("\"verdict\":\"ok\"", "\"verdict\":\"fine\""));
  EXPECT_EQ(problem(), place("\"fine\"") + "verdict: 'fine' is no verdict");
  write(line + "\n");
  EXPECT_THAT(problem(), HasSubstr(":2:"));
}

// Lines of other scenarios are not read, but the file must be a history all the same.
TEST_F(HistoryFile, MustBeAHistoryEvenIfNothingInItIsOfTheScenario) {
  const std::vector<std::string> hashes = {"1f2e"};
  const auto problem_of = [&](const std::string& content) {
    write(content);
    try {
      read_history(file(), hashes);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(file().string().size());
    }
    return std::string();
  };
  EXPECT_EQ(problem_of("{\"kind\":\"launch\", \"of\": \"something else\"}\n"), "");
  const std::string other = ":1:1: is no history; `tandem check --history` begins one if there is no such file";
  EXPECT_EQ(problem_of("some notes\nof mine\n"), other);
  EXPECT_EQ(problem_of("{\n  \"schema_version\": 1,\n  \"kind\": \"report\"\n}\n"), other) << "a golden report";
  EXPECT_EQ(problem_of("{\"schema_version\":1,\"kind\":\"report\"}\n"), other);
  EXPECT_EQ(problem_of("{\n  \"kind\": \"launch\"\n}\n"), other) << "not one line";
  EXPECT_THAT(problem_of("{\"kind\":\"launch\"}\n=======\n"), HasSubstr(":2:1: is a mark of a merge"));
}

TEST_F(HistoryFile, IsNotAppendedToAfterACutLine) {
  append_history(file(), std::vector{launch_of(1)});
  const std::string cut = text() + "{\"schema";
  write(cut);
  EXPECT_THROW(append_history(file(), std::vector{launch_of(2)}), InputError);
  EXPECT_EQ(text(), cut);
}

TEST_F(HistoryFile, IsAFileThatCanBeWritten) {
  EXPECT_THROW(read_history("/dev/full"), InputError) << "it never ends";
  EXPECT_THROW(append_history("/dev/full", std::vector{launch_of(1)}), InputError);
  EXPECT_THROW(check_appendable(file().parent_path()), InputError);
  EXPECT_THROW(check_appendable("/no/such/folder/history.jsonl"), Error);
  EXPECT_NO_THROW(check_appendable(file()));
  EXPECT_FALSE(std::filesystem::exists(file())) << "asking leaves nothing";
}

TEST_F(HistoryFile, OfAMillionLinesIsReadForOneScenario) {
  HistoryLaunch other = launch_of(1'000'000);
  other.scenario_hash = "another";
  append_history(file(), std::vector{other});
  const std::string line = text();
  append_history(file(), std::vector{launch_of(2'000'000)});
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    for (int i = 0; i < 1'000'000; ++i) out << line;
  }
  const std::vector<std::string> hashes = {"1f2e"};
  const auto mine = read_history(file(), hashes);
  ASSERT_EQ(mine.size(), 1U);
  EXPECT_EQ(mine[0].step_time.median, 2'000'000);
}

// A history of one scenario: only its last lines are read, however many there are.
TEST_F(HistoryFile, OfAMillionLinesOfOneScenarioIsReadFromItsEnd) {
  append_history(file(), std::vector{launch_of(1'000'000)});
  const std::string line = text();
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    out << "{\"1f2e\": \"would be refused\", \"kind\": \"launch\"}\n";
  }
  EXPECT_THROW(read_history(file()), InputError);
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    for (int i = 0; i < 1'000'000; ++i) out << line;
  }
  append_history(file(), std::vector{launch_of(2'000'000)});
  const std::vector<std::string> hashes = {"1f2e"};
  const auto last = read_history(file(), hashes);
  ASSERT_EQ(last.size(), kMostOfText);
  EXPECT_EQ(last.front().step_time.median, 1'000'000);
  EXPECT_EQ(last.back().step_time.median, 2'000'000);
}

}  // namespace
}  // namespace tandem
