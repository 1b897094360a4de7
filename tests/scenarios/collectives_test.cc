// Sweeps of collectives, on engines that measure and on one that models.
#include "scenarios/collectives/collective_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/nccl_tests/nccl_tests_reader.h"
#include "reports/nccl_tests/nccl_tests_writer.h"
#include "scenarios/collectives/collective_program.h"
#include "scenarios/collectives/sweep_sizes.h"
#include "scenarios/measurements/published_tables.h"
#include "topologies/base/machine_memory.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kKinds = {CollectiveKind::all_reduce,  CollectiveKind::reduce,         CollectiveKind::broadcast,
                               CollectiveKind::all_gather,  CollectiveKind::reduce_scatter, CollectiveKind::all_to_all,
                               CollectiveKind::send_receive};

CollectiveJob on_threads(int devices, int workers = 1) {
  return {.engine = "cpu", .topology = nullptr, .workers = workers, .devices = devices};
}

CollectiveJob on_h100s(int devices, int workers = 1) {
  return {.engine = "sim",
          .topology = machine_of("hgx-h100", workers),
          .device_type = DeviceType::gpu,
          .workers = workers,
          .devices = devices};
}

// Sixteen dies whose links of xGMI join no die with the next one everywhere: rings pass them in another order. Six of
// them, of 36 GB/s each, and no PCIe.
TEST(Collectives, RingsOfXgmiPassTheGpusInAnyOrder) {
  CollectiveJob job{.engine = "sim",
                    .topology = machine_of(TANDEM_SOURCE_DIR "/tests/topologies/samples/nccl/rccl_topo_16p1h.xml", 1),
                    .device_type = DeviceType::gpu,
                    .workers = 1,
                    .devices = 16};
  CollectiveSweep sweep;
  sweep.kind = CollectiveKind::all_reduce;
  sweep.sizes = {std::int64_t{1} << 30};
  const CollectiveTable table = run_collective(job, sweep).table;
  const double seconds = table.rows.at(0).time_us() * 1e-6;
  const double bus = static_cast<double>(table.rows.at(0).bytes) / seconds * 2 * 15 / 16;
  EXPECT_GT(bus, 0.9 * 6 * 36e9);
  EXPECT_LT(bus, 6 * 36e9);
}

TEST(SweepSizes, AreThoseOfNcclTests) {
  EXPECT_EQ(parse_sweep_size("8"), 8);
  EXPECT_EQ(parse_sweep_size("64K"), 65536);
  EXPECT_EQ(parse_sweep_size("128M"), 1 << 27);
  EXPECT_EQ(parse_sweep_size("1.5KiB"), 1536);
  EXPECT_EQ(parse_sweep_size("2G"), std::int64_t{1} << 31);
  for (const char* text : {"", "K", "8X", "8KB2", "-8", "1e999", "nan"}) EXPECT_FALSE(parse_sweep_size(text)) << text;
  EXPECT_THAT(sweep_sizes(8, 64, 0, 2), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(sweep_sizes(8, 30, 10, 1), ElementsAre(8, 18, 28));
  EXPECT_THAT(sweep_sizes(8, 8, 0, 2), ElementsAre(8));
  EXPECT_THAT(sweep_sizes(0, 64, 0, 2), ElementsAre(0));
  EXPECT_TRUE(sweep_sizes(9, 8, 1, 1).empty());
}

TEST(Collectives, EveryKindOnThreadsMovesTheRightValues) {
  for (const CollectiveKind kind : kKinds) {
    for (const auto& [workers, devices] : {std::pair{1, 3}, {2, 2}}) {
      SCOPED_TRACE(std::string(name_of(kind)) + " on " + std::to_string(workers));
      CollectiveSweep sweep;
      sweep.kind = kind;
      sweep.root = 1;
      sweep.sizes = {4, 4800, 65536};
      sweep.warmup = 1;
      sweep.iterations = 3;
      const CollectiveTable table = run_collective(on_threads(devices, workers), sweep).table;
      EXPECT_EQ(table.devices, workers * devices);
      EXPECT_EQ(table.nodes, workers);
      ASSERT_GE(table.rows.size(), 2u);
      for (const CollectiveRow& row : table.rows) {
        EXPECT_EQ(row.wrong, 0) << row.bytes;
        EXPECT_GT(row.time_us(), 0) << row.bytes;
      }
    }
  }
}

TEST(Collectives, ReduceOtherTypesAndOperations) {
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::maximum, Reduction::minimum}) {
      CollectiveSweep sweep;
      sweep.dtype = dtype;
      sweep.reduction = reduction;
      sweep.sizes = {1024};
      sweep.iterations = 1;
      sweep.warmup = 0;
      const CollectiveTable table = run_collective(on_threads(3), sweep).table;
      EXPECT_EQ(table.dtype, nccl_word_of(dtype));
      EXPECT_EQ(table.redop, nccl_word_of(reduction));
      EXPECT_EQ(table.rows.at(0).wrong, 0);
    }
  }
}

// As nccl-tests counts: a gather's size is that of the whole, its count that of a rank.
TEST(Collectives, RoundsSizesDownToWholeElementsOfEveryRank) {
  CollectiveSweep sweep;
  sweep.kind = CollectiveKind::all_gather;
  sweep.sizes = {8, 127, 128, 1000};
  sweep.warmup = 0;
  sweep.iterations = 1;
  const CollectiveTable table = run_collective(on_h100s(8), sweep).table;
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0].bytes, 96);
  EXPECT_EQ(table.rows[0].count, 3);
  EXPECT_EQ(table.rows[1].bytes, 128);
  EXPECT_EQ(table.rows[2].bytes, 992);
  EXPECT_FALSE(table.rows[2].wrong.has_value());  // there are no values
  EXPECT_FALSE(table.rows[2].in_place_us.has_value());
}

TEST(Collectives, AreDeterministicInSimulations) {
  CollectiveSweep sweep;
  sweep.sizes = sweep_sizes(1024, 1 << 26, 0, 8);
  sweep.warmup = 0;
  sweep.iterations = 1;
  for (const CollectiveKind kind : kKinds) {
    sweep.kind = kind;
    const CollectiveTable first = run_collective(on_h100s(8, 2), sweep).table;
    const CollectiveTable second = run_collective(on_h100s(8, 2), sweep).table;
    ASSERT_EQ(first.rows.size(), sweep.sizes.size());
    for (std::size_t i = 0; i < first.rows.size(); ++i) EXPECT_EQ(first.rows[i].time_us(), second.rows[i].time_us());
    EXPECT_GT(first.rows.back().time_us(), first.rows.front().time_us());
  }
}

TEST(Collectives, RefuseARootThatIsNoRank) {
  CollectiveSweep sweep;
  sweep.sizes = {64};
  sweep.root = 2;
  EXPECT_THROW(run_collective(on_threads(2), sweep), UsageError);
}

CollectiveTable small_table() {
  CollectiveTable table;
  table.operation = "all_reduce";
  table.redop = "sum";
  table.devices = 2;
  table.nodes = 1;
  CollectiveRow row;
  row.bytes = 1 << 20;
  row.count = 1 << 18;
  row.out_of_place_us = row.in_place_us = 100.0;
  row.algorithm = "ring LL128, 8 channels";
  table.rows = {row};
  return table;
}

CollectiveRun small_run() {
  CollectiveRun run;
  run.engine = "sim";
  run.topology = "box";
  run.least_bytes = run.most_bytes = 1 << 20;
  run.step_factor = 2;
  run.iterations = 1;
  run.devices_per_worker = 2;
  run.one_process_a_device = true;
  run.devices = {{"localhost0", 0, "GPU:0"}, {"localhost0", 1, "GPU:1"}};
  run.device_model = "NVIDIA H100";
  return run;
}

TEST(NcclTestsWriter, WritesTheLinesOfNcclTests) {
  CollectiveTable published = small_table();
  published.file = "log.txt";
  published.rows[0].out_of_place_us = 80.0;
  const std::string text = nccl_tests_text(small_run(), small_table(), Against(published));
  EXPECT_THAT(text, HasSubstr("# nThread 1 nGpus 1 minBytes 1048576 maxBytes 1048576 step: 2(factor) warmup iters: 0 "
                              "iters: 1 agg iters: 1 validation: 0 graph: 0\n"));
  EXPECT_THAT(text, HasSubstr("#  Rank  1 Group  0 Pid      1 on localhost0 device  1 [GPU:1] NVIDIA H100\n"));
  EXPECT_THAT(text, HasSubstr("     1048576        262144     float     sum      -1   100.00   10.49   10.49    N/A   "
                              "100.00   10.49   10.49    N/A  |     80.00   +25.0 %  ring LL128, 8 channels\n"));
  EXPECT_THAT(text, HasSubstr("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 10.4858\n"));
}

TEST(NcclTestsWriter, WritesWhatTheReaderReads) {
  for (const bool json : {false, true}) {
    const std::string text = json ? nccl_tests_json(small_run(), small_table(), Against(small_table())).dump(2)
                                  : nccl_tests_text(small_run(), small_table(), Against(small_table()));
    const auto tables = read_nccl_tests(text, "own");
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].operation, "all_reduce");
    EXPECT_EQ(tables[0].devices, 2);
    EXPECT_EQ(tables[0].devices_per_process, 1);
    ASSERT_EQ(tables[0].rows.size(), 1u);
    EXPECT_EQ(tables[0].rows[0].bytes, 1 << 20);
    EXPECT_EQ(tables[0].rows[0].time_us(), 100.0);
  }
}

// Calls after the first ones are equal, also where some streams run ahead of others: the mean of 40 calls, half of
// which are simulated, is that of 20 with a steady one for each of the others.
TEST(Collectives, TheMeanOfManySimulatedCallsFollowsFromFew) {
  for (const CollectiveKind kind : kKinds) {
    const auto mean_us = [kind](int calls) {
      CollectiveSweep sweep{.kind = kind, .sizes = {1 << 20}, .warmup = 0, .iterations = calls};
      const CollectiveResult result = run_collective(on_h100s(8, 2), sweep);
      const bool is_noted = std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
        return note.find("calls of each size were simulated") != std::string::npos;
      });
      EXPECT_EQ(is_noted, calls > 20);
      return result.table.rows.at(0).time_us();
    };
    const double ten = 10 * mean_us(10), twenty = 20 * mean_us(20);
    const double steady = (twenty - ten) / 10;
    EXPECT_NEAR(1000 * mean_us(1000), twenty + 980 * steady, 1e-3 * 1000 * steady) << operation_of(kind);
    EXPECT_NEAR(mean_us(1'000'000'000), steady, 1e-3 * steady) << operation_of(kind);
  }
}

TEST(Collectives, WhatThisMachineIsTooSmallForIsRefused) {
  const auto problem_of = [](const CollectiveJob& job, const CollectiveSweep& sweep) -> std::string {
    try {
      run_collective(job, sweep);
      return "none";
    } catch (const SizeError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(problem_of(on_threads(2), {.sizes = {1 << 10}, .iterations = 1 << 30}),
              HasSubstr("2 devices need about 472.4 GB of this machine's memory; "));
  EXPECT_THAT(problem_of(on_threads(2), {.sizes = {std::int64_t{1} << 42}}), HasSubstr("2 devices need about "));
}

// Returns how long a call takes if every worker is simulated, as the table counts it, in nanoseconds.
Nanoseconds time_of_all_workers(const CollectiveJob& job, const CollectiveSweep& sweep) {
  EngineOptions options;
  options.workers.clear();
  options.topology = job.topology;
  std::vector<DeviceId> group;
  for (int task = 0; task < job.workers; ++task) {
    options.workers.push_back(
        {.task = task, .topology_worker = task, .device_type = job.device_type, .device_count = job.devices});
    for (int i = 0; i < job.devices; ++i) group.push_back({"worker", task, job.device_type, i});
  }
  const auto sizes = collectives::sizes_of(sweep, job.workers * job.devices);
  std::vector<std::atomic<std::int64_t>> wrong(sizes.size());
  const Timeline timeline = open_engine("sim", std::move(options))->run([&](Worker& worker) {
    collectives::run_sweep(worker, group, sweep, sizes, wrong, {});
  });
  std::map<int, Nanoseconds> starts;
  Nanoseconds begin = 0, end = 0;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::collective || record.step == kNoStep) continue;
    const auto [start, is_new] = starts.try_emplace(record.device, record.start_ns);
    if (!is_new) start->second = std::min(start->second, record.start_ns);
    end = std::max(end, record.end_ns);
  }
  for (const auto& [device, start] : starts) begin = std::max(begin, start);
  return end - begin;
}

TEST(Collectives, OfWorkersThatAreAlikeTakeAsLongAsThoseOfAllWorkers) {
  CollectiveJob cpus{.engine = "sim", .topology = machine_of("cpu-host", 6), .workers = 6, .devices = 5};
  CollectiveJob shared{
      .engine = "sim", .topology = machine_of("aws-p5", 6), .device_type = DeviceType::gpu, .workers = 6, .devices = 8};
  for (const CollectiveJob& job : {on_h100s(4, 6), cpus, shared}) {
    for (const CollectiveKind kind : kKinds) {
      if (kind == CollectiveKind::send_receive) continue;
      const CollectiveSweep sweep{.kind = kind, .sizes = {48 << 20}, .warmup = 0, .iterations = 1};
      const CollectiveResult result = run_collective(job, sweep);
      EXPECT_EQ(std::llround(result.table.rows.at(0).time_us() * 1e3), time_of_all_workers(job, sweep))
          << name_of(kind) << " on " << job.topology->name();
      EXPECT_EQ(result.devices.size(), static_cast<std::size_t>(job.workers * job.devices));
      EXPECT_EQ(result.devices.back().task, job.workers - 1);
    }
  }
}

}  // namespace
}  // namespace tandem
