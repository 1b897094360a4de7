#include "engine/timeline.h"

#include "topologies/base/error.h"

namespace tandem {

std::string_view name_of(Category category) {
  switch (category) {
    case Category::compute:
      return "compute";
    case Category::communication:
      return "communication";
    case Category::update:
      return "update";
    case Category::input:
      return "input";
    case Category::other:
      return "other";
  }
  check_failed("known category", __FILE__, __LINE__, "a Category outside its enumerators");
}

std::string_view name_of(RecordKind kind) {
  switch (kind) {
    case RecordKind::op:
      return "op";
    case RecordKind::copy:
      return "copy";
    case RecordKind::collective:
      return "collective";
    case RecordKind::step:
      return "step";
  }
  check_failed("known record kind", __FILE__, __LINE__, "a RecordKind outside its enumerators");
}

}  // namespace tandem
