// `tandem calibrate --from`: a topology with measured collectives, out of files that people have.
#pragma once

#include <string>
#include <vector>

#include "cli/base/common_options.h"

namespace tandem {

struct CalibrateFromFlags {
  std::vector<std::string> files;
  std::string topology;  // a file or a catalog name
  std::string report;    // a file for the JSON report; may be empty
};

int calibrate_from(const CommonOptions& common, const CalibrateFromFlags& flags);

}  // namespace tandem
