#include "scenarios/sweep/rank_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <system_error>
#include <thread>

namespace tandem {

namespace fs = std::filesystem;

RankFiles::RankFiles(fs::path results, Rank rank, SweepIdentity identity)
    : results_(std::move(results)), rank_(rank), identity_(std::move(identity)) {
  if (rank_.count > 1 && results_.empty()) throw RunError("several ranks need a file of results to share");
}

fs::path RankFiles::mine() const {
  fs::path file = results_;
  if (rank_.index > 0) file += fmt::format(".rank{}", rank_.index);
  return file;
}

StoredPoints RankFiles::news() {
  StoredPoints news;
  for (const fs::path& file : others()) {
    StoredPoints more = readers_.try_emplace(file, file, identity_).first->second.more();
    std::move(more.points.begin(), more.points.end(), std::back_inserter(news.points));
    std::move(more.of_plans.begin(), more.of_plans.end(), std::back_inserter(news.of_plans));
  }
  return news;
}

void RankFiles::remove_others() const {
  std::error_code ignored;
  for (const fs::path& file : others()) fs::remove(file, ignored);
}

std::vector<fs::path> RankFiles::others() const {
  std::vector<fs::path> files;
  if (results_.empty()) return files;
  if (!is_first()) files.push_back(results_);
  const fs::path folder = results_.parent_path(), own = mine().filename();
  const std::string prefix = results_.filename().string() + ".rank";
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    const fs::path name = entry.path().filename();
    if (name.string().starts_with(prefix) && name != own) files.push_back(folder / name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

void wait_for_ranks(double wait_s, const std::function<std::size_t()>& missing, const std::string& what) {
  using Clock = std::chrono::steady_clock;
  auto heard_at = Clock::now();
  std::size_t before = 0;
  for (std::size_t left = missing(); left > 0; left = missing()) {
    if (left != before) heard_at = Clock::now();
    before = left;
    const double silent_s = std::chrono::duration<double>(Clock::now() - heard_at).count();
    if (silent_s > wait_s) {
      throw RanksAreSilent(
          fmt::format("{} points of other ranks are missing, and nothing came for {:.0f} s; run the {} again for them",
                      left, silent_s, what));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace tandem
