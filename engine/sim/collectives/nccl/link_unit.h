// How fast one NVLink or xGMI link of a GPU is, by its architecture.
#pragma once

#include <string_view>

namespace tandem::sim::nccl {

// "sm_90" -> 90, "sm_120a" -> 120; a GPU of AMD ("gfx942") -> 0; others -> 80, the generation that most constants were
// fitted to.
int capability_of(std::string_view architecture);

// Rates of NVLink: what NCCL counts, and what the wire carries.
struct NvlinkRate {
  double nccl_gbs = 0;
  double wire_gbs = 0;
};

struct LinkUnit {
  double nccl_gbs = 0;     // one link by NCCL's constants
  double wire_gbs = 0;     // as it carries the copies of kernels
  double nominal_gbs = 0;  // by its datasheet
  int most = 0;            // of one GPU

  // Of the links that a file gives a rate for, on a GPU for all of whose links it gives `all_gbs`. Where that is more
  // than the GPU has by NCCL's constant, the rates are those of the datasheet.
  NvlinkRate rate_of(double gbs, double all_gbs) const;
};

LinkUnit unit_of(std::string_view architecture, int capability);

}  // namespace tandem::sim::nccl
