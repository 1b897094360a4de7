// docs/fidelity/message.md: how far the times of `collectives: message` are from those of `fluid`, for one call that
// has the links to itself. With TANDEM_UPDATE_DOCS=1 in the environment all machines are simulated, and the file is
// written anew; else some.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "scenarios/collectives/collective_job.h"
#include "topologies/base/error.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"

namespace tandem {
namespace {

const std::string kMessagePage = TANDEM_SOURCE_DIR "/docs/fidelity/message.md";
constexpr std::int64_t kFromSize = 64 << 10;
const std::vector<std::int64_t> kMessageSizes = {1 << 10, 16 << 10, 64 << 10, 256 << 10, 4 << 20, 64 << 20, 1 << 30};
constexpr double kMostBelow = 10, kMostAbove = 5;  // percent

constexpr std::array kCollectives = {CollectiveKind::all_reduce,     CollectiveKind::all_gather,
                                     CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                                     CollectiveKind::reduce,         CollectiveKind::all_to_all};

struct Deviation {
  double percent = 0;
  std::int64_t bytes = 0;
  std::string algorithm;
  void keep_larger(const Deviation& other) {
    if (std::abs(other.percent) > std::abs(percent)) *this = other;
  }
};

// The largest below kFromSize, and from there on.
struct Deviations {
  Deviation below, above;
};

std::vector<CollectiveRow> rows_with(CollectiveJob job, CollectiveKind kind, CollectiveFidelity fidelity) {
  job.collectives = fidelity;
  const CollectiveSweep sweep{
      .kind = kind, .sizes = kMessageSizes, .warmup = 0, .iterations = 1, .checks_values = false};
  return run_collective(job, sweep).table.rows;
}

Deviations deviations_of(const CollectiveJob& job, CollectiveKind kind) {
  Deviations found;
  const auto fluid = rows_with(job, kind, CollectiveFidelity::fluid);
  const auto message = rows_with(job, kind, CollectiveFidelity::message);
  for (std::size_t i = 0; i < fluid.size(); ++i) {
    const double percent = 100 * (*message[i].out_of_place_us / *fluid[i].out_of_place_us - 1);
    (fluid[i].bytes < kFromSize ? found.below : found.above).keep_larger({percent, fluid[i].bytes, fluid[i].algorithm});
  }
  return found;
}

std::string size_text(std::int64_t bytes) {
  if (bytes >= 1 << 30) return fmt::format("{} GiB", bytes >> 30);
  return bytes >= 1 << 20 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

// The row of a machine and, a line each, what is beyond the limits. Empty where NCCL has nothing to do.
struct MachineRows {
  std::string row;
  std::string beyond;
};

MachineRows rows_of(const std::string& machine) {
  MachineRows rows{.row = fmt::format("| {} |", machine), .beyond = {}};
  bool has_nccl = false;
  for (const int machines : {1, 2, 4}) {
    Deviations worst;
    bool is_possible = true;
    for (const CollectiveKind kind : kCollectives) {
      CollectiveJob job{.engine = "sim", .device_type = DeviceType::gpu, .workers = machines};
      try {
        job.topology = std::make_shared<const Topology>(make_cluster(machine, machines));
        job.devices = devices_of_machine(job);
        if (job.devices * machines < 2) throw UnavailableError("one GPU");
      } catch (const Error&) {
        is_possible = false;
        break;
      }
      const Deviations found = deviations_of(job, kind);
      worst.below.keep_larger(found.below);
      worst.above.keep_larger(found.above);
      has_nccl |= !found.above.algorithm.empty() || !found.below.algorithm.empty();
      for (const auto& [deviation, most] : {std::pair{found.below, kMostBelow}, {found.above, kMostAbove}}) {
        if (std::abs(deviation.percent) <= most) continue;
        rows.beyond += fmt::format("| {} | {} | {} | {} | {} | {:+.0f} |\n", machine, machines, name_of(kind),
                                   size_text(deviation.bytes), deviation.algorithm, deviation.percent);
      }
    }
    rows.row += is_possible ? fmt::format(" {:+.1f} | {:+.1f} |", worst.below.percent, worst.above.percent) : " | |";
  }
  rows.row += "\n";
  return has_nccl ? rows : MachineRows{};
}

std::string page_text() {
  std::ifstream in(kMessagePage);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Replaces the lines of a table, which follow the line that begins with "|---" after a mark.
std::string with_table(const std::string& page, const std::string& mark, const std::string& rows) {
  const std::size_t begin = page.find('\n', page.find("\n|---", page.find(mark)) + 1) + 1;
  std::size_t end = begin;
  while (end < page.size() && page[end] == '|') end = page.find('\n', end) + 1;
  return page.substr(0, begin) + rows + page.substr(end);
}

TEST(MessageFidelity, IsAsFarFromFluidAsThePageSays) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what is simulated does not depend on a sanitizer";
#endif
  const std::string page = page_text();
  if (std::getenv("TANDEM_UPDATE_DOCS") == nullptr) {
    for (const char* machine : {"dgx1-v100", "hgx-h100-4gpu", "rtx4090-8gpu"}) {
      const MachineRows rows = rows_of(machine);
      EXPECT_NE(page.find(rows.row), std::string::npos) << "not in docs/fidelity/message.md: " << rows.row;
      EXPECT_TRUE(rows.beyond.empty() || page.find(rows.beyond) != std::string::npos)
          << "not in docs/fidelity/message.md: " << rows.beyond;
    }
    return;
  }
  std::string all, beyond;
  for (const std::string& machine : catalog_names()) {
    const MachineRows rows = rows_of(machine);
    all += rows.row;
    beyond += rows.beyond;
  }
  std::ofstream(kMessagePage) << with_table(with_table(page, "## Every machine", all), "## Beyond the limits", beyond);
}

}  // namespace
}  // namespace tandem
