// How fast one NVLink or xGMI link of a GPU is, by its architecture.
#pragma once

#include <string_view>

namespace tandem::sim::nccl {

// Returns the compute capability: "sm_90" -> 90, "sm_120a" -> 120; a GPU of AMD ("gfx942") -> 0; others -> 80, the
// generation that most constants were fitted to.
int capability_of(std::string_view architecture);

// Rates of NVLink: what NCCL assumes, and what the wire carries.
struct NvlinkRate {
  double nccl_gbs = 0;
  double wire_gbs = 0;
};

struct LinkUnit {
  double nccl_gbs = 0;     // one link by NCCL's constants
  double wire_gbs = 0;     // one link, as it carries the copies of kernels
  double nominal_gbs = 0;  // one link by the datasheet
  int most = 0;            // links of one GPU

  // Returns the rates of the links to which a file gives `gbs`, on a GPU to whose links it gives `all_gbs` in total. If
  // that total exceeds what the GPU has by NCCL's constant, the file's rates are taken as those of the datasheet.
  NvlinkRate rate_of(double gbs, double all_gbs) const;
};

LinkUnit unit_of(std::string_view architecture, int capability);

}  // namespace tandem::sim::nccl
