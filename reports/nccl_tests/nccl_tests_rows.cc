#include "reports/nccl_tests/nccl_tests_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "topologies/base/units.h"

namespace tandem::nccl_tests {
namespace {

constexpr int kMostDevices = 1 << 16;
constexpr double kRounding = 0.005;  // of bandwidths, which have two decimals; larger ones have fewer, but are large

double rounding_of(double bandwidth) {
  if (bandwidth < 1000) return kRounding;
  return bandwidth < 10000 ? 0.05 : 0.5;
}

}  // namespace

std::int64_t wrong_elements(double written) {
  return static_cast<std::int64_t>(std::min(std::ceil(written), static_cast<double>(kMostBytes)));
}

std::string time_problem(double us, std::string_view written) {
  if (us == 0) return "";  // refused with the row
  return quantity_problem(us * 1e-6, Dimension::seconds, fmt::format("{} us", written));
}

std::string bandwidth_problem(double gb_per_s, std::string_view written) {
  return quantity_problem(gb_per_s * 1e9, Dimension::bytes_per_second, fmt::format("{} GB/s", written), true);
}

void TableBuilder::problem(const Place& place, std::string message) {
  if (has_problem_) return;
  has_problem_ = true;
  problems_->add({file_, place.line, place.column, "", std::move(message)});
}

bool TableBuilder::begins_again(std::int64_t bytes, const std::string& dtype, const std::string& redop,
                                int root) const {
  if (table_.rows.empty()) return false;
  const bool same = dtype == table_.dtype && redop == table_.redop && root == table_.root;
  return !same || bytes < table_.rows.back().bytes;
}

void TableBuilder::check_figures(const CollectiveRow& row, const Figures& figures, const Place& place) {
  if (!(figures.time_us > 0)) {
    return problem(place, fmt::format("the time of {} B is {} us, must be greater than 0", row.bytes, figures.time_us));
  }
  const double expected = static_cast<double>(row.bytes) / figures.time_us / 1e3;
  // Times are printed with at least four digits; small ones have two decimals.
  const double relative = 0.002 + 0.005 / figures.time_us;
  if (std::abs(expected - figures.algbw) <= expected * relative + 1.01 * rounding_of(figures.algbw)) return;
  problem(place, fmt::format("{} B in {} us are {:.2f} GB/s, the row says {:.4g} GB/s; the time must be in us and the "
                             "bandwidth in GB/s (1e9 B/s)",
                             row.bytes, figures.time_us, expected, figures.algbw));
}

void TableBuilder::add(CollectiveRow row, std::optional<Figures> out_of_place, std::optional<Figures> in_place,
                       const Place& place) {
  if (row.bytes == 0) {  // a small size that was rounded down to nothing
    ++zero_rows_;
    return;
  }
  if (row.wrong.value_or(0) > 0) {
    problem(place,
            fmt::format("{} wrong elements: the run computed wrong values, so its times mean nothing", *row.wrong));
  }
  if (!table_.rows.empty() && table_.rows.back().bytes == row.bytes) {
    return problem(place, fmt::format("{} B is there twice, first on line {}; were several processes started without "
                                      "MPI, so that each printed a table?",
                                      row.bytes, table_.rows.back().line));
  }
  for (const auto& figures : {out_of_place, in_place}) {
    if (figures) check_figures(row, *figures, place);
  }
  if (out_of_place) row.out_of_place_us = out_of_place->time_us;
  if (in_place) row.in_place_us = in_place->time_us;
  figures_.push_back(out_of_place ? *out_of_place : in_place.value_or(Figures{}));
  table_.rows.push_back(std::move(row));
}

bool TableBuilder::counts_one_rank() const {
  const auto dtype = dtype_of_nccl(table_.dtype);
  if (!dtype) return false;
  return std::any_of(table_.rows.begin(), table_.rows.end(), [&](const CollectiveRow& row) {
    return row.count > 0 && row.count * static_cast<std::int64_t>(size_of(*dtype)) < row.bytes;
  });
}

// Without a name, only collectives whose rows look different can be distinguished.
void TableBuilder::find_operation(const CollectiveTable& stated) {
  const Place place{table_.line, 1};
  if (!table_.operation.empty() && !stated.operation.empty() && table_.operation != stated.operation) {
    return problem(place, fmt::format("the table is of {}, expected {}", table_.operation, stated.operation));
  }
  if (table_.operation.empty()) table_.operation = stated.operation;
  if (!table_.operation.empty()) return;
  const bool reduces = !table_.redop.empty() && table_.redop != "none";
  if (reduces && table_.root >= 0) table_.operation = "reduce";
  if (reduces && table_.root < 0) table_.operation = counts_one_rank() ? "reduce_scatter" : "all_reduce";
  if (!reduces && table_.root >= 0) table_.operation = "broadcast";
  if (table_.operation.empty()) {
    problem(place,
            "the file does not say which collective this is (all_gather or all_to_all); a line with the program's "
            "name, such as all_gather_perf, would");
  }
}

// Returns bus bandwidth / algorithm bandwidth in the fastest row, and by how much rounding may have changed it.
std::optional<TableBuilder::Factor> TableBuilder::measured_factor() const {
  const auto best = std::max_element(figures_.begin(), figures_.end(),
                                     [](const Figures& a, const Figures& b) { return a.algbw < b.algbw; });
  if (best == figures_.end() || best->algbw < 1) return {};  // rounded too coarsely
  const double factor = best->busbw / best->algbw;
  return Factor{factor, (rounding_of(best->busbw) + factor * rounding_of(best->algbw)) / best->algbw};
}

bool TableBuilder::fits_devices(const Factor& factor) const {
  const double expected = *bus_factor(table_.operation, table_.devices);
  return std::abs(expected - factor.value) <= 0.002 * expected + factor.rounding;
}

// Returns the only number of devices that gives this ratio; 0 if several do.
int TableBuilder::devices_of(const Factor& factor) const {
  int found = 0;
  for (int n = 2; n <= kMostDevices; ++n) {
    if (std::abs(*bus_factor(table_.operation, n) - factor.value) > factor.rounding) continue;
    if (found != 0) return 0;
    found = n;
  }
  return found;
}

void TableBuilder::find_devices(const CollectiveTable& stated) {
  const Place place{table_.line, 1};
  if (!kind_of_operation(table_.operation)) return;
  const auto factor = measured_factor();
  if (table_.devices == 0) table_.devices = stated.devices;
  if (has_doubtful_devices_ && stated.devices > 0) table_.devices = stated.devices;
  if (table_.devices == 0 && factor) table_.devices = devices_of(*factor);
  if (has_doubtful_devices_ && factor && table_.devices > 0 && !fits_devices(*factor)) {
    table_.devices = devices_of(*factor);
    table_.nodes = 0;
  }
  if (table_.devices == 0) {
    return problem(place, fmt::format("the file does not say how many devices took part in this {}; the lines "
                                      "'#  Rank  0 ... on HOST device  0' would",
                                      table_.operation));
  }
  if (!factor || fits_devices(*factor)) return;
  const double expected = *bus_factor(table_.operation, table_.devices);
  problem(place,
          fmt::format("bus bandwidth is {:.3f} times algorithm bandwidth, which is not {} on {} devices ({:.3f})",
                      factor->value, table_.operation, table_.devices, expected));
}

CollectiveTable TableBuilder::finished(const CollectiveTable& stated) {
  table_.file = file_;
  if (table_.rows.empty()) {
    problem({table_.line, 1}, "the table has no row with bytes");
    return table_;
  }
  find_operation(stated);
  find_devices(stated);
  if (table_.devices_per_process == 0) table_.devices_per_process = stated.devices_per_process;
  if (table_.nodes == 0) table_.nodes = stated.nodes;
  if (table_.nccl_version.empty()) table_.nccl_version = stated.nccl_version;
  return table_;
}

}  // namespace tandem::nccl_tests
