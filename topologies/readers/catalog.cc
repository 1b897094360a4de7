#include "topologies/readers/catalog.h"

#include <algorithm>
#include <cstdlib>

#include "topologies/base/error.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCatalog = "topologies/catalog";

std::vector<fs::path> data_folders() {
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv("TANDEM_DATA_DIR"); folder != nullptr && *folder != '\0') {
    folders.emplace_back(folder);
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) folders.push_back(program.parent_path().parent_path() / "share" / "tandem");
  folders.emplace_back(TANDEM_DATA_SOURCE_DIR);
  folders.emplace_back(TANDEM_DATA_INSTALL_DIR);
  return folders;
}

}  // namespace

fs::path find_data(const fs::path& relative) {
  std::string tried;
  for (const fs::path& folder : data_folders()) {
    std::error_code error;
    if (fs::exists(folder / relative, error)) return folder / relative;
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  throw Error("'" + relative.string() + "' is in none of " + tried + "; set TANDEM_DATA_DIR");
}

std::vector<std::string> catalog_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(find_data(kCatalog))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path catalog_file(std::string_view name) {
  return find_data(fs::path(kCatalog) / (std::string(name) + ".yaml"));
}

Topology load_catalog_node(std::string_view name) {
  const std::vector<std::string> known = catalog_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string nearest = nearest_name(name, known);
    Diagnostic diagnostic;
    diagnostic.message = "unknown catalog node '" + std::string(name) + "'" +
                         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
    throw InputError({diagnostic});
  }
  return read_topology_yaml(catalog_file(name));
}

}  // namespace tandem
