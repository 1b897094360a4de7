// The intervals of groups of predictions, and whether they hold for sites that they do not rest on.
//
// A site is whoever published measurements. Rows of one site and one family of machines, a cluster, share hardware,
// software and the way of measuring, so that they say little about those of another one. Clusters are therefore taken
// as drawn from all there are, and rows as drawn from their clusters (Lee, Barber and Willett, "Distribution-free
// inference with hierarchical data", 2023). A cluster with n rows weighs as much as sqrt(n), which is between counting
// each cluster once and each row once. By the finite-sample rule of conformal prediction, the interval of a level holds
// that level times (K + 1) / K of the weight of K clusters, and leaves out as much below as above.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/errors/prediction_groups.h"
#include "reports/validation/validation.h"

namespace tandem {

// A row that was predicted.
struct PredictedRow {
  PredictionRows of{};
  std::string site{};
  std::string family{};  // of the machine
  double ratio = 1;      // of times, or of memory: measured / predicted
  double error = 0;      // as tables of validate show it: of throughputs, predicted / measured - 1
};

// Returns the rows of all groups. Rows that are reported apart do not count, but those of central storage, which one
// process always drives, and of collectives over other networks or without P2P or of which it is not stated, whose
// groups they are.
std::vector<PredictedRow> rows_for_bands(const Validation& validation);

// Returns the rows of a group.
std::vector<PredictedRow> rows_of(const PredictionRows& of, const std::vector<PredictedRow>& rows);

// Returns the errors of a group that has rows. Where K clusters are too few for a level, its interval is of the level
// K / (K + 1), from the least to the greatest row; with fewer than five sites, K is the number of sites. Where few
// sites have rows, it is instead at least that of all groups of training together, or of collectives of that size.
// Groups that are predicted much worse (parameter servers, central storage, PCIe, other networks) or are of something
// else (memory) are not taken together with others.
GroupErrors band_of(const PredictionRows& of, const std::vector<PredictedRow>& rows);

// Returns the share of a group's rows that are within the interval, by its index, that the other sites give; nothing if
// no row has one.
std::optional<double> share_of_new_sites(const PredictionRows& of, std::size_t interval,
                                         const std::vector<PredictedRow>& rows);

// Returns the errors of the groups of which there are rows, in the order of all_prediction_rows().
std::vector<GroupErrors> group_errors(const Validation& validation, FigureBasis figures);
// Formats them, with the shares of new sites, as a table.
std::string group_bands_text(const Validation& validation);

}  // namespace tandem
