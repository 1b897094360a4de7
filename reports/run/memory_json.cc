#include "reports/run/memory_json.h"

#include "reports/base/json_fields.h"

namespace tandem {

nlohmann::ordered_json memory_to_json(const MemoryNeed& need) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const MemoryPart& part : memory_parts()) {
    if (part.bytes != &MemoryNeed::reserved || need.reserved > 0) json[part.name] = need.*part.bytes;
  }
  json["total"] = need.total();
  json["available"] = need.available;
  if (need.cached > 0) json["cached"] = need.cached;
  if (!need.moment.empty()) json["moment"] = need.moment;
  return json;
}

MemoryNeed memory_from_json(const JsonField& field) {
  MemoryNeed need;
  for (const MemoryPart& part : memory_parts()) {
    const bool is_optional = part.bytes == &MemoryNeed::reserved;  // only where it is stated
    const JsonField bytes = is_optional ? field.optional(part.name) : field.required(part.name);
    if (!is_optional || bytes.present()) need.*part.bytes = bytes.count();
  }
  need.available = field.required("available").count();
  if (const JsonField cached = field.optional("cached"); cached.present()) need.cached = cached.count();
  need.moment = text_or_empty(field, "moment");
  return need;
}

}  // namespace tandem
