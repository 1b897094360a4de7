#include "scenarios/measurements/measurement_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "reports/nccl_tests/nccl_tests_json.h"

namespace tandem::validation {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr int kMostDevices = 1 << 20;

// One row: an object with these keys, or a list under the table's `columns`.
class Row {
 public:
  Row(const YamlReader& row, const std::vector<std::string>& columns) : row_(row), columns_(columns) {
    if (row_.is_list()) fields_ = row_.list();
    is_whole_ = row_.is_map() || (row_.is_list() && fields_.size() == columns_.size());
    if (row_.is_list() && !is_whole_) {
      row_.error(fmt::format("has {} fields, the table has {} columns", fields_.size(), columns_.size()));
    }
    if (!row_.is_list() && !row_.is_map()) row_.error("expected an object, or a list of the table's columns");
  }

  bool is_whole() const { return is_whole_; }

  std::optional<YamlReader> find(std::string_view name) const {
    if (row_.is_map()) return row_.has(name) ? usable(row_.optional(name)) : std::nullopt;
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    const auto index = static_cast<std::size_t>(found - columns_.begin());
    return index < fields_.size() ? usable(fields_[index]) : std::nullopt;
  }

  // A time in us, from the column in us or the one in ms.
  std::optional<double> time_us(std::string_view in_us, std::string_view in_ms = "") const {
    if (const auto field = find(in_us)) return field->number({.above = 0});
    if (in_ms.empty()) return {};
    if (const auto field = find(in_ms)) return field->number({.above = 0}) * 1e3;
    return {};
  }

  const YamlReader& reader() const { return row_; }

 private:
  static std::optional<YamlReader> usable(const YamlReader& field) {
    return field.kind() == YamlKind::null ? std::nullopt : std::optional(field);
  }

  YamlReader row_;
  const std::vector<std::string>& columns_;  // the table's
  std::vector<YamlReader> fields_;
  bool is_whole_ = false;
};

// Returns the number that a map has under the first of several names.
int first_count(const YamlReader& map, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const YamlReader value = map.optional(name); value.is_scalar()) return value.integer(1, kMostDevices, 0);
  }
  return 0;
}

std::string scalar_text(const YamlReader& value) {
  return value.is_scalar() ? value.text("") : "";
}

// Digits behind the point that a column prints at most. Zeros at the end of one number may have been dropped.
class PrintedDigits {
 public:
  PrintedDigits(const std::vector<Row>& rows, std::string_view column) {
    for (const Row& row : rows) {
      if (const auto field = row.find(column); field && field->is_scalar()) add(field->text());
    }
  }
  // Whether rounding may have changed a value by more than 2 %.
  bool is_coarse(double value) const { return 0.5 * std::pow(10.0, -digits_) > 0.02 * value; }

 private:
  void add(const std::string& text) {
    constexpr int kOfDoubles = 17;
    const auto point = text.find('.');
    if (text.find_first_of("eE") != text.npos) {
      digits_ = kOfDoubles;
    } else if (point != text.npos) {
      digits_ = std::max(digits_, static_cast<int>(text.size() - point - 1));
    }
  }
  int digits_ = 0;
};

// Times from the bandwidths of a table that has no times.
class BandwidthColumns {
 public:
  explicit BandwidthColumns(const std::vector<Row>& rows) {
    for (const Column& column : kColumns) {
      if (std::ranges::any_of(rows, [&](const Row& row) { return row.find(column.name).has_value(); }))
        columns_.emplace_back(column, PrintedDigits(rows, column.name));
    }
  }

  // Fills in the times of a row without any. Returns whether it has a bandwidth; counts those that are too coarse.
  // `bus_factor` is the ratio of bus bandwidth to algorithm bandwidth; 0: unknown.
  bool read(const Row& row, double bus_factor, CollectiveRow& to) {
    bool has_some = false, is_coarse = false;
    for (const auto& [column, digits] : columns_) {
      const auto field = row.find(column.name);
      std::optional<double>& time_us = column.is_in_place ? to.in_place_us : to.out_of_place_us;
      if (!field || time_us || (column.is_bus && bus_factor <= 0)) continue;
      const double printed = field->number({.least = 0});
      has_some = true;
      is_coarse = digits.is_coarse(printed);
      if (is_coarse) continue;
      const double gb_per_s = column.is_bus ? printed / bus_factor : printed;
      time_us = static_cast<double>(to.bytes) / gb_per_s / 1e3;
    }
    if (is_coarse && to.time_us() <= 0) ++coarse_;
    return has_some;
  }
  int coarse() const { return coarse_; }

 private:
  struct Column {
    std::string_view name;
    bool is_bus, is_in_place;
  };
  static constexpr std::array kColumns{
      Column{"algbw", false, false},         Column{"algbw_out_of_place", false, false},
      Column{"busbw", true, false},          Column{"busbw_out_of_place", true, false},
      Column{"algbw_in_place", false, true}, Column{"busbw_in_place", true, true}};
  std::vector<std::pair<Column, PrintedDigits>> columns_;
  int coarse_ = 0;
};

class FileReader {
 public:
  FileReader(const YamlReader& root, std::string file, Machines machines, Diagnostics& problems)
      : root_(root), machines_(machines), problems_(problems) {
    result_.file = std::move(file);
  }

  MeasurementFile read() {
    if (!root_.is_map() || (!root_.has("rows") && !root_.has("tables"))) {
      root_.error("is no file of measurements: it has neither 'rows' nor 'tables'");
      return std::move(result_);
    }
    check_units(root_.optional("units"));
    read_health(root_.optional("healthy"));
    result_.site = site_of(root_.optional("source"));
    version_ = version();
    if (root_.has("rows")) {
      read_table(root_);
    } else {
      for (const YamlReader& table : root_.required("tables").list()) read_table(table);
    }
    if (result_.tables.empty() && problems_.empty()) root_.error("holds no tables");
    return std::move(result_);
  }

 private:
  static void check_units(const YamlReader& units) {
    const auto check = [&](const char* key, const char* right) {
      const YamlReader unit = units.optional(key);
      if (unit.is_scalar() && !unit.text().starts_with(right)) {
        unit.error(fmt::format("must be {}, found '{}'", right, unit.text()));
      }
    };
    check("bytes", "B");
    check("time", "us");
    check("algbw", "GB/s");
    check("busbw", "GB/s");
  }

  static std::string site_of(const YamlReader& source) {
    const auto text_of = [&](const char* key) {
      const YamlReader text = source.is_map() ? source.optional(key) : source;
      return text.is_scalar() && text.kind() != YamlKind::null ? text.text() : "";
    };
    if (const std::string site = text_of("site"); !site.empty()) return site;
    const std::string repository = text_of("repository"), title = text_of("title");
    const std::size_t slash = repository.find('/');  // OWNER/NAME
    if (slash != std::string::npos && repository.find(' ') == std::string::npos) return repository.substr(0, slash);
    return title.empty() ? repository : title;
  }

  void read_health(const YamlReader& healthy) {
    if (!healthy.is_scalar()) return;
    const std::string word = healthy.text();
    if (word != "true" && word != "false" && word != "unknown") {
      healthy.error(fmt::format("expected true, false or \"unknown\", found '{}'", word));
    }
    result_.healthy = word != "false";
  }

  // If a table does not state the number, takes it from the file or from its description of the hardware.
  int devices_of(const YamlReader& table) const {
    if (const int count = first_count(table, {"gpus", "workers", "devices"})) return count;
    if (const int count = first_count(root_, {"gpus", "devices"})) return count;
    const YamlReader hardware = root_.optional("hardware");
    if (const int count = first_count(hardware, {"total_gpus", "gpus_used"})) return count;
    return first_count(hardware, {"gpus_per_node"}) * std::max(1, first_count(hardware, {"nodes"}));
  }

  std::string text_of(const YamlReader& table, std::string_view key) const {
    const std::string own = scalar_text(table.optional(key));
    return own.empty() ? scalar_text(root_.optional(key)) : own;
  }

  void read_table(const YamlReader& reader) {
    CollectiveTable table;
    table.file = result_.file;
    table.line = reader.line();
    const std::string collective = text_of(reader, "collective");
    table.operation = operation_of_test(collective);
    if (table.operation.empty()) table.operation = collective;
    if (collective.empty()) reader.error("does not say which 'collective' it is");
    if (const std::string dtype = text_of(reader, "dtype"); !dtype.empty())
      table.dtype = dtype.substr(0, dtype.find(' '));
    table.redop = text_of(reader, "op");
    table.nccl_version = version_;
    const int nodes = first_count(reader, {"nodes"});
    std::map<int, CollectiveTable> by_devices = rows_of(reader, table, devices_of(reader));
    for (auto& [devices, rows] : by_devices) add_table(reader, std::move(rows), devices, nodes);
  }

  // A text without a number, such as "custom build", says nothing of NCCL's version.
  std::string version() {
    const YamlReader software = root_.optional("software");
    if (!software.is_map()) return "";
    constexpr std::string_view kLibrary = "library";  // a description, with or without a version
    for (const std::string_view key : {std::string_view("nccl_version"), std::string_view("nccl"), kLibrary}) {
      const YamlReader stated = software.optional(key);
      const std::string text = scalar_text(stated);
      const auto digit = text.find_first_of("0123456789");
      std::string number =
          digit == text.npos ? "" : text.substr(digit, text.find_first_not_of("0123456789.", digit) - digit);
      if (number.find('.') != number.npos) return number;
      const bool may_be_unknown = text.empty() || text.starts_with("not stated") || text == "unknown";
      if (key != kLibrary && !may_be_unknown) {
        result_.notes.push_back(
            fmt::format("software.{}: '{}' is no version such as 2.27.3, and is taken as not stated", key, text));
      }
    }
    return "";
  }

  // Returns the rows of a table, divided into one table for each number of devices if a column states it.
  std::map<int, CollectiveTable> rows_of(const YamlReader& reader, const CollectiveTable& table, int devices) {
    std::vector<std::string> columns;
    for (const YamlReader& column : reader.optional("columns").list()) columns.push_back(column.text());
    std::map<int, CollectiveTable> tables;
    const bool was_right = problems_.empty();
    const std::vector<YamlReader> items = reader.required("rows").list();
    std::vector<Row> rows;
    for (const YamlReader& item : items) {
      rows.emplace_back(item, columns);
      if (was_right && !problems_.empty()) return tables;  // the following rows would mostly repeat the problem
    }
    BandwidthColumns bandwidths(rows);
    for (const Row& row : rows) {
      if (was_right && !problems_.empty()) break;
      int of_row = devices;
      for (const char* key : {"processors", "gpus"}) {
        if (const auto count = row.find(key)) of_row = count->integer(1, kMostDevices, 0);
      }
      const double factor = bus_factor(table.operation, of_row).value_or(0);
      const auto read = read_row(row, bandwidths, factor);
      if (read) tables.try_emplace(of_row, table).first->second.rows.push_back(*read);
    }
    if (bandwidths.coarse() > 0) {
      result_.notes.push_back(fmt::format("{}: rows left out whose bandwidths have too few digits for a time: {}",
                                          table.operation, bandwidths.coarse()));
    }
    return tables;
  }

  // Rows of other libraries than NCCL and RCCL, and of more nodes than the table, are left out.
  static bool is_of_table(const Row& row) {
    if (row.find("nodes")) return false;
    const auto algorithm = row.find("algorithm");
    return !algorithm || algorithm->text().starts_with("NCCL") || algorithm->text().starts_with("RCCL");
  }

  static std::optional<CollectiveRow> read_row(const Row& row, BandwidthColumns& bandwidths, double bus_factor) {
    if (!row.is_whole() || !is_of_table(row)) return {};
    CollectiveRow read;
    read.line = row.reader().line();
    const auto bytes = row.find("bytes");
    if (!bytes) {
      row.reader().error("has no 'bytes'");
      return {};
    }
    read.bytes = bytes->whole_number(0, kMostBytes);
    read.out_of_place_us = row.time_us("time_us_out_of_place");
    if (!read.out_of_place_us) read.out_of_place_us = row.time_us("time_us", "median_ms");
    if (!read.out_of_place_us) read.out_of_place_us = row.time_us("mean_us", "time_ms");
    read.in_place_us = row.time_us("time_us_in_place");
    if (read.out_of_place_us || read.in_place_us) {
      check_bandwidth(row, read, "algbw", read.out_of_place_us);
      check_bandwidth(row, read, "algbw_in_place", read.in_place_us);
    } else if (!bandwidths.read(row, bus_factor, read)) {
      row.reader().error(
          "has no time: 'time_us_out_of_place', 'time_us_in_place', 'time_us', 'median_ms' or 'time_ms', and no "
          "bandwidth: 'algbw', 'busbw', 'algbw_in_place' or 'busbw_in_place'");
      return {};
    } else if (read.time_us() <= 0) {
      return {};  // counted as too coarse
    }
    if (read.bytes == 0) return {};  // a size that nccl-tests rounded down to nothing
    return read;
  }

  // If times and bandwidths disagree, one of them has another unit.
  static void check_bandwidth(const Row& row, const CollectiveRow& read, std::string_view column,
                              std::optional<double> time_us) {
    const auto field = row.find(column);
    if (!field || read.bytes == 0 || !time_us || !(*time_us > 0)) return;
    const double printed = field->number({.least = 0});
    const double computed = static_cast<double>(read.bytes) / *time_us / 1e3;
    if (std::abs(computed - printed) <= 0.02 * computed + 0.01) return;
    field->error(fmt::format("{} B in {} us are {:.2f} GB/s, not {}; times are in us and bandwidths in GB/s (1e9 B/s)",
                             read.bytes, *time_us, computed, printed));
  }

  void add_table(const YamlReader& reader, CollectiveTable table, int devices, int nodes) {
    if (devices == 0) return reader.error("does not say how many devices took part ('gpus')");
    table.devices = devices;
    table.nodes = nodes;
    MeasuredTable measured;
    // A table's own entry comes before that of the file.
    const YamlReader own = reader.optional("topology");
    const YamlReader entry = own.is_map() ? own : root_.optional("topology");
    const bool lacks = entry.is_map() && entry.has("lacks");
    if (!entry.is_map()) measured.lacks = "a 'topology'";
    if (lacks) measured.lacks = entry.required("lacks").text();
    const bool names_machine = entry.is_map() && !lacks;
    if (machines_ == Machines::ignore && names_machine && nodes == 0) table.nodes = first_count(entry, {"nodes"});
    if (machines_ == Machines::build && names_machine) {
      measured.machine = read_replay_machine(entry, devices, nodes);
      if (measured.machine) {
        table.nodes = measured.machine->nodes;
        table.devices_per_process = measured.machine->devices_per_process;
      }
    }
    measured.table = std::move(table);
    result_.tables.push_back(std::move(measured));
  }

  const YamlReader& root_;
  const Machines machines_;
  Diagnostics& problems_;
  std::string version_;
  MeasurementFile result_;
};

}  // namespace

MeasurementFile parse_measurements(std::string_view text, const std::string& file, Machines machines) {
  check_json(text, file);
  const YamlDocument document = YamlDocument::parse(text, file);
  Diagnostics problems;
  const YamlReader root(document, problems);
  MeasurementFile result = FileReader(root, file, machines, problems).read();
  problems.throw_if_any();
  return result;
}

bool is_measurement_file(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != text.npos && text[first] == '{';
  const bool has_tables = text.find("\"rows\"") != text.npos || text.find("\"tables\"") != text.npos;
  return is_json && has_tables && text.find("\"results\"") == text.npos;
}

}  // namespace tandem::validation
