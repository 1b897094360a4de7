#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <regex>
#include <thread>

#include "cli/serve.h"
#include "tests/cli/command_line.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ReportCommand : public CommandLine {
 protected:
  // Stores the report of a simulation as JSON, with and without the details of pictures, and its page beside it.
  void store() const {
    const Outcome outcome =
        tandem({"run", example("digits-sim.yaml"), "--json", "-o", "run.json", "--html", "run.html"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Outcome detailed = tandem({"run", example("digits-sim.yaml"), "--json", "--details", "-o", "detailed.json"});
    ASSERT_EQ(detailed.exit_code, 0) << detailed.err;
  }
};

// Sends a request to 127.0.0.1 and returns all of the answer.
std::string answer_to(int port, const std::string& request) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      send(connection, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t count; (count = recv(connection, buffer, sizeof buffer, 0)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(count));
    }
  }
  close(connection);
  return answer;
}

TEST_F(ReportCommand, ShowsWhatTheRunPrinted) {
  store();
  const std::string printed = tandem({"run", example("digits-sim.yaml")}).out;
  EXPECT_EQ(tandem({"report", "run.json"}).out, printed);
  EXPECT_EQ(tandem({"report", "detailed.json"}).out, printed);
  EXPECT_EQ(tandem({"report", "run.json", "run.json"}).out, printed + "\n" + printed);
}

TEST_F(ReportCommand, RefusesAReportWhosePartsDoNotAddUp) {
  store();
  auto report = nlohmann::json::parse(read("run.json"));
  report["step_time_ns"]["mean"] = report["step_time_ns"]["median"] = 7;
  write("edited.json", report.dump());
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--html", "edited.html"}}) {
    std::vector<std::string> command = {"report", "edited.json"};
    command.insert(command.end(), more.begin(), more.end());
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err,
                testing::MatchesRegex("edited.json:[0-9]+:[0-9]+: per_step_ns: its parts add up to [0-9]+ ns, but the "
                                      "mean of step_time_ns is 7 ns; was the document edited.\n"));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(exists("edited.html"));
}

TEST_F(ReportCommand, APageOnTheStandardOutputIsAloneThere) {
  store();
  const std::string page = read("run.html");
  EXPECT_EQ(tandem({"run", example("digits-sim.yaml"), "--html", "-"}).out, page);
  const Outcome apart = tandem({"run", example("digits-sim.yaml"), "--html", "-", "-o", "run.txt"});
  EXPECT_EQ(apart.out, page);
  EXPECT_THAT(read("run.txt"), StartsWith("digits"));
  const Outcome both = tandem({"run", example("digits-sim.yaml"), "--html", "-", "--json"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("the page and the document of --json cannot both be the standard output"));
  EXPECT_EQ(tandem({"run", example("digits-sim.yaml"), "--html", "-", "--json", "-o", "again.json"}).out, page);
  EXPECT_EQ(read("again.json"), read("run.json"));
}

// Measured results differ each time, so that their documents are compared with the pages of the same runs only.
TEST_F(ReportCommand, ShowsWhatEveryOtherCommandPrintedAndWritesItsPage) {
  write_small_scenario();
  const std::string simulated = example("digits-sim.yaml");
  std::filesystem::create_directory(folder() / "suite");
  std::filesystem::copy_file(simulated, folder() / "suite" / "digits-sim.yaml");
  ASSERT_EQ(tandem({"check", "suite", "--baseline", "golden", "--update", "-q"}).exit_code, 0);
  auto changed = nlohmann::json::parse(read("golden/digits-sim.json"));
  changed["step_time_ns"]["mean"] = changed["step_time_ns"]["median"] = 1;
  write("changed.json", changed.dump());
  const auto store_both = [this](std::vector<std::string> command) {
    command.insert(command.end(), {"-q", "--json", "-o", "stored.json", "--html", "page.html"});
    const Outcome outcome = tandem(command);
    EXPECT_THAT(outcome.exit_code, testing::AnyOf(0, 1, 6)) << outcome.err;
    EXPECT_EQ(tandem({"report", "stored.json", "--html", "again.html"}).exit_code, 0);
    EXPECT_EQ(read("again.html"), read("page.html")) << command[0] << " " << command[1] << " " << command[2];
    const Outcome shown = tandem({"report", "stored.json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    return shown.out;
  };
  EXPECT_THAT(store_both({"compare", "small.yaml", "--replicas", "1,2", "--tries", "1", "--details", "--topology",
                          calibrated_machine()}),
              HasSubstr("simulated"));
  EXPECT_THAT(store_both({"check", "small.yaml", "--against", TANDEM_BINARY}), StartsWith("small"));
  EXPECT_THAT(store_both({"check", "small.yaml", "--history", "h.jsonl"}), StartsWith("small"));
  EXPECT_THAT(store_both({"check", simulated, "--history", "h.jsonl"}), StartsWith("digits-sim"));
  const std::vector<std::vector<std::string>> repeatable = {{"check", simulated, "--baseline", "changed.json"},
                                                            {"check", "suite", "--baseline", "golden"},
                                                            {"history", "h.jsonl"},
                                                            {"sweep", example("gpt-sweep.yaml"), "--no-results"}};
  for (std::vector<std::string> command : repeatable) {
    const std::string shown = store_both(command);
    command.emplace_back("-q");
    EXPECT_EQ(shown, tandem(command).out) << command[0] << " " << command[1] << " " << command[2];
  }
  const std::vector<std::string> explore = {"run", simulated, "--explore", "2", "-q"};
  std::vector<std::string> stored = explore;
  stored.insert(stored.end(), {"--json", "-o", "explored.json"});
  ASSERT_EQ(tandem(stored).exit_code, 0);
  EXPECT_EQ(tandem({"report", "explored.json"}).out, tandem(explore).out);
}

TEST_F(ReportCommand, WritesThePageOfTheRunFromItsDetailedDocument) {
  store();
  EXPECT_EQ(tandem({"report", "detailed.json", "--html", "again.html"}).exit_code, 0);
  EXPECT_EQ(read("again.html"), read("run.html"));
  EXPECT_EQ(tandem({"report", "run.json", "--html", "short.html"}).exit_code, 0);
  EXPECT_THAT(read("short.html"), HasSubstr("The records of the steps are not in this document"));
}

TEST_F(ReportCommand, ADetailedDocumentIsABaseline) {
  store();
  const Outcome outcome =
      tandem({"check", example("digits-sim.yaml"), "--baseline", "detailed.json", "--html", "check.html"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(read("check.html"), HasSubstr("<p class=\"verdict good\">ok</p>"));
}

TEST_F(ReportCommand, APageIsRefusedWhereverAStoredResultIsExpected) {
  store();
  const std::string refusal =
      "run.html:1:1: is a page, which only shows a result; expected the result itself, as the command that wrote the "
      "page stores it with --json -o FILE\n";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"report", "run.html"},
                                                  {"report", "run.html", "--html", "again.html"},
                                                  {"compare", "run.html", "run.json"},
                                                  {"compare", "run.json", "run.html"},
                                                  {"check", example("digits-sim.yaml"), "--baseline", "run.html"}}) {
    const Outcome outcome = tandem(command);
    EXPECT_EQ(outcome.exit_code, 3) << command[0];
    EXPECT_EQ(outcome.err, refusal) << command[0];
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(exists("again.html"));
  const Outcome history = tandem({"history", "run.html"});
  EXPECT_EQ(history.exit_code, 3);
  EXPECT_THAT(history.err, StartsWith("run.html:1:1: is no history"));
}

TEST_F(ReportCommand, ADashAndTheNameOfStdoutAreStdout) {
  store();
  const std::string page = read("run.html");
  EXPECT_EQ(tandem({"report", "detailed.json", "--html", "-"}).out, page);
  EXPECT_EQ(tandem({"report", "detailed.json", "--html", "/dev/stdout"}).out, page);
  EXPECT_FALSE(exists("-"));
  std::filesystem::create_symlink("there.json", folder() / "link.json");
  EXPECT_EQ(tandem({"report", "run.json", "--json", "-o", "link.json"}).exit_code, 0);
  EXPECT_EQ(read("there.json"), read("run.json")) << "the file that the link names";
}

TEST_F(ReportCommand, RefusesWhatItCannotShow) {
  write("poem.json", "{\"kind\": \"poem\"}");
  EXPECT_EQ(tandem({"report", "poem.json"}).exit_code, 3);
  const Outcome page = tandem({"report", "poem.json", "--html", "poem.html"});
  EXPECT_EQ(page.exit_code, 3);
  EXPECT_THAT(page.err, testing::ContainsRegex("poem.json:[0-9]+:[0-9]+: kind: is 'poem', of which there is no page"));
  EXPECT_FALSE(exists("poem.html"));
  EXPECT_EQ(tandem({"report", "nowhere.json"}).exit_code, 3);
  EXPECT_EQ(tandem({"run", example("digits-sim.yaml"), "--html", "/dev/full"}).exit_code, 5);
  EXPECT_EQ(tandem({"report", "poem.json", "--trace", "trace.json"}).exit_code, 2) << "without --serve";
  EXPECT_EQ(tandem({"report", "poem.json", "poem.json", "--json"}).exit_code, 2) << "two documents on stdout";
  EXPECT_EQ(tandem({"report", "poem.json", "--serve", "0", "--html", "page.html"}).exit_code, 2);
}

TEST_F(ReportCommand, ReadsDocumentsLargerThanWhatPeopleWrite) {
  store();
  const std::string usual = tandem({"report", "run.json"}).out;
  write("run.json", read("run.json") + std::string(std::size_t{17} << 20, ' '));
  EXPECT_EQ(tandem({"report", "run.json"}).out, usual);
  EXPECT_EQ(tandem({"check", example("digits-sim.yaml"), "--baseline", "run.json"}).exit_code, 0);
}

TEST_F(ReportCommand, RefusesATraceThatCannotBeRead) {
  if (!can_serve()) GTEST_SKIP() << "libmicrohttpd was not found when this was built";
  store();
  const Outcome missing = tandem({"report", "run.json", "--serve", "0", "--trace", "nowhere.json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.err, "nowhere.json: no such file\n");
  EXPECT_EQ(tandem({"report", "run.json", "--serve", "0", "--trace", "."}).exit_code, 3);
}

TEST_F(ReportCommand, ServesThePageToThisMachineUntilCtrlC) {
  if (!can_serve()) GTEST_SKIP() << "libmicrohttpd was not found when this was built";
  store();
  write("trace.json",
        "{\"traceEvents\": []}" + std::string(std::size_t{33} << 20, ' '));  // larger than what people write
  auto serving = std::async(std::launch::async, [this] {
    return tandem_interrupted({"report", "detailed.json", "--serve", "0", "--trace", "trace.json"}, 3);
  });
  std::smatch found;
  std::string err;
  for (int i = 0; i < 100 && !std::regex_search(err, found, std::regex("http://127.0.0.1:([0-9]+)/")); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    err = read("stderr.txt");
  }
  ASSERT_FALSE(found.empty()) << err;
  const int port = std::stoi(found[1]);
  const auto get = [&](const std::string& path, const std::string& host) {
    return answer_to(port, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  };
  const std::string page = get("/", "127.0.0.1:" + found[1].str());
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("id=\"open-trace\""));
  EXPECT_THAT(page, HasSubstr("connect-src 'self'"));
  const std::string trace = get("/trace.json", "localhost");
  EXPECT_THAT(trace.substr(0, 4096), HasSubstr("{\"traceEvents\": []}"));
  EXPECT_GT(trace.size(), std::size_t{33} << 20);
  EXPECT_THAT(get("/other", "localhost"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get("/", "elsewhere.example"), StartsWith("HTTP/1.1 403"));
  EXPECT_EQ(serving.get().exit_code, 0);
}

}  // namespace
}  // namespace tandem
