#include <algorithm>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/input/autoshard.h"
#include "tests/conformance/tf/input_values.h"

namespace tandem::autoshard_cases {
namespace {

constexpr int kFiles = 10;

std::vector<std::string> file_names(int count = kFiles) {
  std::vector<std::string> names;
  for (int file = 0; file < count; ++file) names.push_back("file" + std::to_string(file));
  return names;
}

// Record r of file f is [f, r].
Dataset::FileReader records(int per_file = 10) {
  return [per_file](const std::string& name) {
    std::vector<Element> all;
    for (std::int32_t record = 0; record < per_file; ++record) {
      all.emplace_back(HostTensor::vector(std::vector<std::int32_t>{std::stoi(name.substr(4)), record}));
    }
    return all;
  };
}

Dataset reader_of(const Element& name) {
  return Dataset::raw_reader({name.tensor().text()}, records());
}

Dataset interleaved_reader() {
  return Dataset::list_files(file_names()).interleave(reader_of, 4);
}

Dataset with_policy(const Dataset& dataset, AutoShardPolicy policy) {
  return dataset.with_options({.auto_shard_policy = policy});
}

Json shard_json(const Dataset& dataset, int shards, int index, int replicas = 1) {
  return to_json(auto_shard(dataset, shards, index, replicas).dataset);
}

Json value(Json json) {
  return {{"value", std::move(json)}};
}

// Returns the files of a list of records, and the records of each (one list if all are alike).
Json files_of(const Json& all) {
  std::map<int, Json> by_file;
  for (const Json& record : all) by_file[record[0]].push_back(record[1]);
  Json files = Json::array(), distinct = Json::array();
  for (const auto& [file, of_file] : by_file) {
    files.push_back(file);
    if (std::find(distinct.begin(), distinct.end(), of_file) == distinct.end()) distinct.push_back(of_file);
  }
  return {
      {"records", all.size()}, {"files", files}, {"records_per_file", distinct.size() == 1 ? distinct[0] : distinct}};
}

Json flattened(const Json& batches) {
  Json rows = Json::array();
  for (const Json& batch : batches) rows.insert(rows.end(), batch.begin(), batch.end());
  return rows;
}

Json concatenated(const CaseWorld&) {
  const Dataset branch = interleaved_reader().batch(5);
  return files_of(flattened(shard_json(branch.concatenate(branch), 5, 3)));
}

Json interleaved_files(const CaseWorld&) {
  const std::vector<std::vector<std::string>> lines = {{"1", "2", "3"}, {"4", "5", "6"}, {"7", "8", "9"}};
  const auto read = [lines](const std::string& name) {
    std::vector<Element> all;
    for (const std::string& line : lines.at(std::stoul(name.substr(4)))) all.emplace_back(HostTensor::scalar(line));
    return all;
  };
  const Dataset dataset =
      Dataset::list_files(file_names(3))
          .interleave([read](const Element& name) { return Dataset::raw_reader({name.tensor().text()}, read); }, 3);
  return value(shard_json(dataset, 2, 0));
}

Json intersection(const Dataset& dataset) {
  const Json first = shard_json(dataset, 2, 0), second = shard_json(dataset, 2, 1);
  Json common = Json::array();
  for (const Json& record : first) {
    if (std::find(second.begin(), second.end(), record) != second.end()) common.push_back(record);
  }
  return {{"intersection", common}, {"records", first.size() + second.size()}};
}

Json disjoint(const CaseWorld&) {
  Json all;
  for (const AutoShardPolicy policy : {AutoShardPolicy::file, AutoShardPolicy::data}) {
    all[std::string(name_of(policy))] = intersection(with_policy(interleaved_reader(), policy));
  }
  return all;
}

Json rebatched_files(const CaseWorld&) {
  const Dataset dataset = Dataset::read_files(file_names(3), records(5)).batch(5).rebatch({2, 1, 2});
  return value(shard_json(dataset, 3, 1));
}

Json legacy_rebatched_files(const CaseWorld&) {
  const Dataset dataset = Dataset::read_files(file_names(5), records()).batch(5).legacy_rebatch(5);
  return value(shard_json(dataset, 5, 3));
}

Json legacy_rebatch_with_data(const CaseWorld&) {
  const std::vector<std::vector<std::int64_t>> sizes = {{2, 1, 1}, {1, 1, 2}, {1, 2, 1}};
  Json all;
  for (const AutoShardPolicy policy : {AutoShardPolicy::automatic, AutoShardPolicy::data}) {
    for (int worker = 0; worker < 3; ++worker) {
      const Dataset batches = Dataset::range(8).batch(4).rebatch(sizes[static_cast<std::size_t>(worker)]);
      all[std::string(name_of(policy))]["worker" + std::to_string(worker)] =
          shard_json(with_policy(batches, policy), 3, worker, 3);
    }
  }
  return all;
}

// A dataset of datasets, each reading a group of files.
Json groups_of_files(const CaseWorld&) {
  Json all = Json::array();
  for (const std::size_t group : {1, 3, 10}) {
    const std::vector<std::string> names = file_names();
    std::vector<Dataset> groups;
    for (std::size_t first = 0; first < names.size(); first += group) {
      const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(first + group, names.size()));
      groups.push_back(
          Dataset::list_files({names.begin() + static_cast<std::ptrdiff_t>(first), end}).map([](const Element& name) {
            return Element::of_dataset(reader_of(name));
          }));
    }
    const auto itself = [](const Element& element) { return element.dataset(); };
    const Dataset flat = Dataset::from_datasets(groups).flat_map(itself).prefetch(1).prefetch(1).interleave(itself, 1);
    all.push_back(files_of(shard_json(flat, 5, 0)));
  }
  return {{"each", all}};
}

Json v1_files(const CaseWorld&) {
  return files_of(to_json(auto_shard_v1(Dataset::read_files(file_names(), records(4)), 2, 0)));
}

Json shuffled_files(const CaseWorld&) {
  const Dataset dataset = Dataset::list_files(file_names()).shuffle(7).interleave(reader_of, 2);
  return intersection(with_policy(dataset, AutoShardPolicy::file));
}

Json mapped_to_readers(const CaseWorld&) {
  const Dataset dataset = Dataset::list_files(file_names())
                              .map([](const Element& name) { return Element::of_dataset(reader_of(name)); })
                              .interleave([](const Element& element) { return element.dataset(); }, 2);
  return files_of(shard_json(dataset, 5, 1));
}

Json fixed_list(const CaseWorld&) {
  const Dataset dataset = Dataset::raw_reader(file_names(), records());
  return {{"auto", name_of(auto_shard(dataset, 5, 0).applied)},
          {"file", error_of([&] { auto_shard(with_policy(dataset, AutoShardPolicy::file), 5, 0); })}};
}

Json asserted_cardinality(const CaseWorld&) {
  const Dataset dataset = Dataset::read_files(file_names(), records()).assert_cardinality(100);
  return files_of(shard_json(with_policy(dataset, AutoShardPolicy::file), 5, 0));
}

Json hinted(const CaseWorld&) {
  const auto marked = Dataset::range(10).shard(Dataset::kShardHint, Dataset::kShardHint).batch(2);
  const auto hint = AutoShardPolicy::hint;
  return {{"marked", shard_json(with_policy(marked, hint), 2, 1)},
          {"unmarked", shard_json(with_policy(Dataset::range(4), hint), 2, 1)}};
}

Dataset read_by_data() {
  return with_policy(Dataset::raw_reader(file_names(), records()), AutoShardPolicy::data);
}

const bool added = add_cases({
    {"ash-002",
     [](const CaseWorld&) {
       return value(shard_json(Dataset::zip({interleaved_reader(), interleaved_reader()}), 5, 3));
     }},
    {"ash-003", concatenated},
    {"ash-004",
     [](const CaseWorld&) { return files_of(shard_json(Dataset::read_files(file_names(), records()), 5, 0)); }},
    {"ash-006", [](const CaseWorld&) { return files_of(shard_json(read_by_data(), 5, 0)); }},
    {"ash-007",
     [](const CaseWorld&) {
       return files_of(shard_json(with_policy(interleaved_reader(), AutoShardPolicy::off), 5, 0));
     }},
    {"ash-010", [](const CaseWorld&) { return shard_json(Dataset::range(5), 10, 0); }},
    {"ash-011",
     [](const CaseWorld&) {
       auto elements = auto_shard(Dataset::range(0), 10, 0).dataset.iterator();
       if (!elements.next()) throw OutOfRangeError("the end of the dataset");
       return Json();
     }},
    {"ash-012", [](const CaseWorld&) { return value(shard_json(Dataset::range(1024), 2, 0)); }},
    {"ash-014", interleaved_files},
    {"ash-018", disjoint},
    {"ash-019", rebatched_files},
    {"ash-020", legacy_rebatched_files},
    {"ash-021", legacy_rebatch_with_data},
    {"ash-023",
     [](const CaseWorld&) {
       return files_of(shard_json(Dataset::raw_reader(file_names(), records()).unique(), 5, 0));
     }},
    {"ash-024", groups_of_files},
    {"ash-025", v1_files},

    {"ash-x01",
     [](const CaseWorld&) { return shard_json(with_policy(Dataset::range(4), AutoShardPolicy::file), 2, 0); }},
    {"ash-x02", [](const CaseWorld&) { return value(shard_json(interleaved_reader(), 12, 11)); }},
    {"ash-x03", [](const CaseWorld&) { return value(shard_json(interleaved_reader(), 12, 0)); }},
    {"ash-x04", hinted},
    {"ash-x05", [](const CaseWorld&) { return shard_json(Dataset::range(4), 2, 2); }},
    {"ash-x06",
     [](const CaseWorld&) { return value(shard_json(with_policy(Dataset::range(4), AutoShardPolicy::file), 1, 0)); }},
    {"ash-x07",
     [](const CaseWorld&) {
       return value(shard_json(with_policy(Dataset::range(8).prefetch(1), AutoShardPolicy::data).prefetch(2), 4, 1));
     }},
    {"ash-x08", asserted_cardinality},
    {"ash-x09", fixed_list},
    {"ash-x10", mapped_to_readers},
    {"ash-x11", shuffled_files},
    {"ash-x12", [](const CaseWorld&) { return value(to_json(auto_shard_v1(Dataset::range(4), 2, 1))); }},
});

}  // namespace
}  // namespace tandem::autoshard_cases
