#include "topologies/generators/fabric.h"

#include "topologies/base/error.h"

namespace tandem {

std::string_view name_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::single_switch:
      return "switch";
    case FabricKind::leaf_spine:
      return "leaf_spine";
    case FabricKind::rail:
      return "rail";
    case FabricKind::fat_tree:
      return "fat_tree";
    case FabricKind::torus:
      return "torus";
    case FabricKind::dragonfly:
      return "dragonfly";
  }
  TANDEM_UNREACHABLE("a FabricKind outside its enumerators");
}

}  // namespace tandem
