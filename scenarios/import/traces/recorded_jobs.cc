#include "scenarios/import/traces/recorded_jobs.h"

#include <algorithm>
#include <optional>

#include "scenarios/import/traces/op_table.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

[[noreturn]] void refuse_whole(const std::filesystem::path& file, const std::string& message) {
  throw InputError({problem_at(file.string(), beginning_of(file), message)});
}

bool is_of_sizes(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

// "job" of "folder/job.csv.gz"
std::string name_of_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const std::size_t end = name.find('.', 1);
  return name.substr(0, end);
}

std::vector<RankTrace> checked(const std::vector<std::filesystem::path>& files) {
  const auto traces = read_traces(files);
  for (const RankTrace& trace : *traces) {
    if (trace.has_host) continue;
    refuse_whole(trace.file,
                 "is a trace of Chakra, which does not say when ops began: give traces of PyTorch's profiler");
  }
  if (traces->size() == 1) {
    refuse_whole(traces->front().file, "is the only trace: expected those of several ranks, which can be compared");
  }
  return *traces;
}

}  // namespace

RecordedJob read_recorded_job(const std::vector<std::filesystem::path>& files) {
  std::vector<std::filesystem::path> traces;
  std::optional<std::filesystem::path> table, sizes;
  for (const std::filesystem::path& file : files) {
    std::optional<std::filesystem::path>* place = &sizes;
    if (!is_of_sizes(file)) {
      if (trace_kind_of(InputFile(file)) != TraceKind::none) {
        traces.push_back(file);
        continue;
      }
      place = &table;
    }
    if (*place) {
      refuse_whole(file, "is a second file like " + (*place)->string() +
                             ": expected one table of ops and one file of sizes, or a trace of each rank");
    }
    *place = file;
  }
  if (!traces.empty()) {
    if (table || sizes) refuse_whole(table ? *table : *sizes, "cannot be combined with traces");
    RecordedJob job = job_of_traces(checked(traces));
    job.name = name_of_file(traces.front());
    return job;
  }
  if (!table) refuse_whole(*sizes, "has the sizes of a job: give the table of its ops, too");
  PipelineSizes known;
  if (sizes) known = read_op_table_sizes(InputFile(*sizes));
  if (known.name.empty()) known.name = name_of_file(*table);
  return pipeline_job(read_op_table(InputFile(*table)), table->string(), known);
}

}  // namespace tandem
