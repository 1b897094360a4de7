// The figures of a row of nccl-tests, and a builder of tables from rows. For the readers of this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/nccl_tests/collective_table.h"
#include "topologies/base/strict_yaml.h"

namespace tandem::nccl_tests {

// One of a row's two groups of figures, out of place or in place.
struct Figures {
  double time_us = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
};

// Limits of what a file says, far above any run, so that sums and products of its numbers fit.
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;  // likewise of elements
inline constexpr std::int64_t kMostRanks = std::int64_t{1} << 24;  // likewise of the devices of a machine

// Return a number of wrong elements, which is 1 or more where `written` is above 0, and why a time or bandwidth cannot
// be one (quantity_problem).
std::int64_t wrong_elements(double written);
std::string time_problem(double us, std::string_view written);
std::string bandwidth_problem(double gb_per_s, std::string_view written);

struct Place {
  int line = 0;
  int column = 0;
};

// A table under construction, with the figures that its checks need and the result does not keep.
class TableBuilder {
 public:
  TableBuilder(std::string file, Diagnostics& problems) : file_(std::move(file)), problems_(&problems) {}

  CollectiveTable& table() { return table_; }
  // Whether the number of devices may be wrong, because lines of ranks are left out.
  void set_doubtful_devices(bool is_doubtful) { has_doubtful_devices_ = is_doubtful; }
  bool empty() const { return table_.rows.empty() && zero_rows_ == 0; }
  bool begins_again(std::int64_t bytes, const std::string& dtype, const std::string& redop, int root) const;

  // Reports the first problem of a table only, since the others mostly repeat it or follow from it.
  void problem(const Place& place, std::string message);
  // Adds a row unless it has no bytes. Reports impossible figures.
  void add(CollectiveRow row, std::optional<Figures> out_of_place, std::optional<Figures> in_place, const Place& place);
  // Returns the table. Finds its operation and number of devices, from `stated` where the file does not say them, and
  // checks them against the figures.
  CollectiveTable finished(const CollectiveTable& stated);

 private:
  void check_figures(const CollectiveRow& row, const Figures& figures, const Place& place);
  void find_operation(const CollectiveTable& stated);
  void find_devices(const CollectiveTable& stated);
  struct Factor {
    double value = 0;
    double rounding = 0;
  };
  std::optional<Factor> measured_factor() const;
  int devices_of(const Factor& factor) const;
  bool fits_devices(const Factor& factor) const;
  bool counts_one_rank() const;

  std::string file_;
  Diagnostics* problems_;
  CollectiveTable table_;
  std::vector<Figures> figures_;  // the first of each row
  int zero_rows_ = 0;
  bool has_problem_ = false;
  bool has_doubtful_devices_ = false;
};

}  // namespace tandem::nccl_tests
