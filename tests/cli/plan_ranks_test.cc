// tandem plan on several ranks, which share a search, and what is kept of it for the next one.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/ranks_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PlanOnRanks : public CommandOnRanks {
 protected:
  static constexpr int kPoints = 24;  // of the space

  // A small GPT on 8 GPUs. Activations that are computed again are another group of passes.
  std::string write_gpt(int batch = 32) const {
    return write("small.yaml", fmt::format("schema_version: 1\n"
                                           "workload: {{kind: layers, model: gpt, batch: {}, dtype: bf16, sizes: "
                                           "{{hidden: 256, heads: 8, tokens: 128, layers: 4}}}}\n"
                                           "strategy: {{name: mesh, data: 8, micro_batches: 2}}\n"
                                           "engine: {{name: sim}}\n"
                                           "topology: {{cluster: {{node: hgx-h100, workers: 1}}}}\n"
                                           "devices: {{type: gpu, workers: 1, per_worker: 8}}\n"
                                           "steps: 2\nwarmup_steps: 1\n"
                                           "sweep:\n"
                                           "  values:\n"
                                           "    strategy.data: [2, 4, 8]\n"
                                           "    strategy.tensor: [1, 2, 4]\n"
                                           "    strategy.pipeline: [1, 2, 4]\n"
                                           "    strategy.micro_batches: [1, 2]\n"
                                           "    workload.activation_checkpointing: [false, true]\n"
                                           "  where: [data * tensor * pipeline == devices]\n",
                                           batch));
  }
  std::vector<nlohmann::ordered_json> kept_in(const std::string& file) const {
    std::vector<nlohmann::ordered_json> lines;
    std::istringstream text(read(file));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::ordered_json::parse(line));
    return lines;
  }
  // The text of a file whose first point was lost with its process.
  std::string with_first_point_lost(const std::string& file) const {
    std::string text = read(file);
    const std::size_t line = text.find('\n') + 1, end = text.find('\n', line);
    auto lost = nlohmann::ordered_json::parse(text.substr(line, end - line));
    lost["point"]["state"] = "lost";
    lost["point"]["problem"] = "its process was ended";
    return text.replace(line, end - line, lost.dump());
  }
  // The points whose bounds a file has, each once.
  std::set<std::string> seen_in(const std::string& file) const {
    std::set<std::string> seen;
    for (const auto& line : kept_in(file)) {
      if (line.value("kept", "") != "seen") continue;
      EXPECT_TRUE(seen.insert(line["point"]["values"].dump()).second) << "seen twice: " << line;
    }
    return seen;
  }
};

TEST_F(PlanOnRanks, GiveTheAnswerOfOneProcess) {
  write_gpt();
  for (const char* question : {"plan small.yaml --json", "plan small.yaml --best 1"}) {
    const std::string results = fmt::format("points{}.jsonl", question[std::string(question).size() - 1]);
    const std::vector<Outcome> alone = together(1, question);
    ASSERT_EQ(alone.at(0).exit_code, 0) << alone[0].err;
    const std::vector<Outcome> ranks = together(3, fmt::format("{} -j 1 --results {}", question, results));
    ASSERT_EQ(ranks.size(), 3u);
    EXPECT_EQ(ranks[0].out, alone[0].out);
    for (const Outcome& rank : ranks) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    for (const Outcome& other : {ranks[1], ranks[2]}) EXPECT_EQ(other.out + other.err, "");
    EXPECT_EQ(seen_in(results).size(), kPoints);
    for (const char* end : {".rank1", ".rank2"}) EXPECT_FALSE(exists(results + end)) << end;
  }
}

TEST_F(PlanOnRanks, ASearchGoesOnWithWhatAnEarlierOneKept) {
  write_gpt();
  const std::string question = "plan small.yaml --json --results points.jsonl";
  const std::vector<Outcome> first = together(2, question + " -j 2");
  ASSERT_EQ(first.at(0).exit_code, 0) << first[0].err;
  const std::string kept = read("points.jsonl");
  const std::vector<Outcome> again = together(1, question);
  EXPECT_EQ(again.at(0).out, first[0].out);
  EXPECT_EQ(read("points.jsonl"), kept) << "nothing is simulated again";
  // Only what a line says can be from the file.
  std::string changed = kept;
  const std::string batch = "\"units\":32.0,";
  for (std::size_t at = 0; (at = changed.find(batch, at)) != std::string::npos; ++at)
    changed.replace(at, batch.size(), "\"units\":64.0,");
  ASSERT_NE(changed, kept);
  write("points.jsonl", changed);
  EXPECT_NE(together(1, question).at(0).out, first[0].out);
}

TEST_F(PlanOnRanks, ASweepPassesOverWhatPlansKeep) {
  write_gpt();
  ASSERT_EQ(tandem({"plan", "small.yaml", "--results", "points.jsonl"}).exit_code, 0);
  const Outcome sweep = tandem({"sweep", "small.yaml", "--results", "points.jsonl", "--json"});
  EXPECT_EQ(sweep.exit_code, 0) << sweep.err;
  EXPECT_EQ(sweep.out, tandem({"sweep", "small.yaml", "--no-results", "--json"}).out);
}

TEST_F(PlanOnRanks, EachOneSeesAndKeepsItsShare) {
  write_gpt();
  const std::vector<std::string> question = {"plan", "small.yaml", "--results", "points.jsonl", "--wait", "0.3"};
  const Outcome alone = tandem({"plan", "small.yaml"});
  const Outcome second = ranked(1, 2, question);
  EXPECT_EQ(second.exit_code, 0) << "the first one speaks for all";
  EXPECT_EQ(second.out + second.err, "");
  const std::set<std::string> others = seen_in("points.jsonl.rank1");
  EXPECT_EQ(others.size(), kPoints / 2);
  // The first one has all bounds then, but not the simulations of the second one.
  const Outcome first = ranked(0, 2, question);
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_THAT(first.err, HasSubstr(" points of other ranks are missing, and nothing came for 0 s; run the plan again"));
  EXPECT_THAT(first.out, AllOf(HasSubstr("small: the best of 24 points"), HasSubstr(" not looked at to the end")));
  EXPECT_EQ(seen_in("points.jsonl").size(), kPoints);
  EXPECT_TRUE(exists("points.jsonl.rank1")) << "it may be in use";
  be_rank(0, 1);
  const Outcome rest = tandem({"plan", "small.yaml", "--results", "points.jsonl"});
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_EQ(rest.out, alone.out);
  EXPECT_FALSE(exists("points.jsonl.rank1"));
}

TEST_F(PlanOnRanks, TheFirstOneWaitsForBoundsNoLongerThanItShould) {
  write_gpt();
  const Outcome first = ranked(0, 2, {"plan", "small.yaml", "--results", "points.jsonl", "--wait", "0.3"});
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_THAT(first.err, HasSubstr("12 points of other ranks are missing, and nothing came for 0 s"));
  EXPECT_EQ(seen_in("points.jsonl").size(), kPoints / 2);
}

// Its process was killed in an earlier search; now it waits to look at the point again.
TEST_F(PlanOnRanks, WhatARankLostInAnEarlierSearchIsDoneAgain) {
  write_gpt();
  ASSERT_EQ(ranked(1, 2, {"plan", "small.yaml", "--results", "points.jsonl", "--wait", "0.1"}).exit_code, 0);
  write("points.jsonl.rank1", with_first_point_lost("points.jsonl.rank1"));
  const std::vector<Outcome> ranks = together(2, "plan small.yaml --results points.jsonl");
  be_rank(0, 1);
  EXPECT_EQ(ranks.at(0).out, tandem({"plan", "small.yaml"}).out);
}

TEST_F(PlanOnRanks, APointThatARankLosesIsKnownToBeLost) {
  write_gpt();
  ASSERT_EQ(tandem({"sweep", "small.yaml", "--results", "all.jsonl"}).exit_code, 0);
  ASSERT_EQ(ranked(1, 2, {"plan", "small.yaml", "--results", "points.jsonl", "--wait", "0.1"}).exit_code, 0);
  const std::string text = with_first_point_lost("points.jsonl.rank1");
  const std::string all = read("all.jsonl");
  write("other", text + all.substr(all.find('\n') + 1));  // with its simulations
  std::filesystem::remove(folder() / "points.jsonl.rank1");
  be_rank(0, 2);
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && lines_of("points.jsonl") <= kPoints / 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::filesystem::rename(folder() / "other", folder() / "points.jsonl.rank1");
  });
  const Outcome first = tandem({"plan", "small.yaml", "--results", "points.jsonl"});
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_THAT(first.out, HasSubstr(", 1 lost with their processes"));
}

TEST_F(PlanOnRanks, AWholeSimulationThatTookTooLongIsNotTriedAgain) {
  write_gpt();
  const std::vector<std::string> question = {"plan", "small.yaml", "--results", "points.jsonl", "--json"};
  EXPECT_FALSE(tandem(question).json().contains("stopped"));
  std::string text;
  for (nlohmann::ordered_json line : kept_in("points.jsonl")) {
    if (line.value("kept", "") == "whole")
      line = {{"plan", 1},
              {"kept", "too long"},
              {"seconds", 1e6},
              {"point", {{"values", line["point"]["values"]}, {"state", "not run"}}}};
    text += line.dump() + "\n";
  }
  write("points.jsonl", text);
  const auto again = tandem(question).json();
  EXPECT_THAT(again["stopped"].get<std::string>(), HasSubstr("because a whole simulation takes too long"));
  EXPECT_FALSE(again["points"][again["best"][0].get<std::size_t>()]["whole"].get<bool>());
}

TEST_F(PlanOnRanks, ARankEndsOnceTheFirstOneHas) {
  write_gpt();
  be_rank(1, 2);
  std::jthread first([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && lines_of("points.jsonl.rank1") <= kPoints / 2)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::filesystem::remove(folder() / "points.jsonl.rank1");
  });
  const Outcome second = tandem({"plan", "small.yaml", "--results", "points.jsonl"});  // waits for 600 s otherwise
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out + second.err, "");
}

TEST_F(PlanOnRanks, RefuseFilesOfAnotherSearch) {
  write_gpt(64);
  ASSERT_EQ(ranked(1, 2, {"plan", "small.yaml", "--results", "points.jsonl", "--wait", "0.1"}).exit_code, 0);
  write_gpt(32);
  const std::vector<Outcome> ranks = together(2, "plan small.yaml --results points.jsonl");
  EXPECT_EQ(ranks.at(0).exit_code, 3);
  EXPECT_THAT(ranks[0].err, AllOf(HasSubstr("points.jsonl.rank1"), HasSubstr("has results of another scenario")));
  EXPECT_EQ(ranks.at(1).exit_code, 0);
  EXPECT_EQ(ranks[1].out + ranks[1].err, "");
}

TEST_F(PlanOnRanks, NeedAFileToShare) {
  write_gpt();
  const Outcome first = ranked(0, 2, {"plan", "small.yaml"});
  EXPECT_EQ(first.exit_code, 3);
  EXPECT_THAT(first.err, HasSubstr("--results: is missing: ranks that search together share a file of results"));
  const Outcome second = ranked(1, 2, {"plan", "small.yaml"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(second.out + second.err, "");
  EXPECT_EQ(ranked(1, 2, {"plan", "small.yaml", "--dry-run"}).out, "");
  EXPECT_THAT(ranked(0, 2, {"plan", "small.yaml", "--dry-run"}).out, HasSubstr("# 24 points\n"));
}

TEST_F(PlanOnRanks, EndTogetherWhenTheTimeIsUp) {
  write_gpt();
  const std::vector<Outcome> ranks = together(3, "plan small.yaml --results points.jsonl --within 0");
  EXPECT_EQ(ranks.at(0).exit_code, 5);
  EXPECT_THAT(ranks[0].out, HasSubstr("the time is up (0 s)"));
  for (const Outcome& other : {ranks.at(1), ranks.at(2)}) {
    EXPECT_EQ(other.exit_code, 0);
    EXPECT_EQ(other.out + other.err, "");
  }
  // What they have kept serves the next search.
  be_rank(0, 1);
  EXPECT_EQ(tandem({"plan", "small.yaml", "--results", "points.jsonl"}).out, tandem({"plan", "small.yaml"}).out);
}

TEST_F(PlanOnRanks, OfALauncherGiveTheAnswerOfOneProcess) {
  write_gpt();
  const Outcome alone = tandem({"plan", "small.yaml", "--json"});
  const Outcome ranks = launched(3, "plan small.yaml --json --results points.jsonl -j 1");
  if (ranks.exit_code == 77) GTEST_SKIP() << ranks.out;
  EXPECT_EQ(ranks.exit_code, 0) << ranks.err;
  EXPECT_EQ(ranks.out, alone.out);
}

}  // namespace
}  // namespace tandem
