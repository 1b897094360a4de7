// Checkpoints in every world: who writes one, calls in the wrong place, and the directory of a CheckpointManager.
#include <gmock/gmock.h>

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/training/checkpoint_manager.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A folder of this test's own, the same for all ranks that were launched together.
class Folder {
 public:
  Folder() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("tandem-") + test.name() + "-" + std::to_string(::getppid());
    std::replace(name.begin(), name.end(), '/', '-');
    path_ = fs::temp_directory_path() / name;
    std::error_code made_by_another_rank;
    fs::create_directories(path_, made_by_another_rank);
  }
  ~Folder() {
    std::error_code removed_by_another_rank;
    fs::remove_all(path_, removed_by_another_rank);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_ / folder)) names.push_back(entry.path().filename());
    return names;
  }

 private:
  fs::path path_;
};

void write(const std::string& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::string contents(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

double sum_over_workers(Strategy& strategy, double mine) {
  return strategy.reduce(ReduceOp::sum, Value(mine)).number();
}

TEST_P(Strategies, OneWorkerWritesACheckpointAlsoOfVariablesFromOutsideTheScope) {
  const Folder folder;
  open_world(GetParam(), 3, 1)->run([&](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    const auto epoch = create_variable({.name = "epoch", .trainable = false});
    epoch->assign(worker.index() + 1.0);  // says who has written
    Checkpoint outside(worker), mixed(worker), empty(worker);
    outside.add("epoch", epoch);
    mixed.add("epoch", epoch);
    mixed.add("w", strategy.create_variable({.name = "w", .shape = {1000}}));
    const auto check = [&](const Checkpoint& checkpoint, const std::string& file, double written) {
      EXPECT_EQ(sum_over_workers(strategy, checkpoint.writes() ? 1 : 0), 1) << file;
      checkpoint.save(folder / file);
      sum_over_workers(strategy, 0);  // the file is there
      if (written == 0) return;
      EXPECT_EQ(CheckpointReader(folder / file).initial_value("epoch")(0), written) << file;
    };
    check(mixed, "mixed", 1);
    check(outside, "outside", 1);
    const Scope scope = strategy.scope();
    check(mixed, "mixed in scope", 1);
    mixed.restore(folder / "mixed in scope");
    EXPECT_EQ(host_number(worker, epoch->read()), 1);
    epoch->assign(worker.index() + 1.0);
    check(outside, "outside in scope", 1);
    check(empty, "empty", 0);
  });
}

TEST_P(Strategies, CheckpointsAreRefusedWhereEveryReplicaWouldWriteThem) {
  const Folder folder;
  run(2, [&](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto w = strategy.create_variable({.name = "w", .shape = {2}});
    Checkpoint checkpoint(worker);
    checkpoint.add("w", w);
    CheckpointManager manager(checkpoint, folder / "managed");
    const auto refused = [&](const std::function<void()>& call) {
      return message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) {
          call();
          return Value();
        });
      });
    };
    EXPECT_EQ(refused([&] { checkpoint.save(folder / "w"); }),
              "Checkpoint::save() of '" + folder / "w" +
                  "' is called inside run(), once for each replica; call it once, after run()");
    EXPECT_THAT(refused([&] { checkpoint.restore(folder / "w"); }), HasSubstr("Checkpoint::restore()"));
    EXPECT_THAT(refused([&] { manager.save(); }), HasSubstr("CheckpointManager::save() in '" + folder / "managed"));
    EXPECT_THAT(refused([&] { manager.restore_or_initialize(); }), HasSubstr("restore_or_initialize()"));
    const auto in_update = [&](Variable&, const Value::Parts&) {
      checkpoint.save(folder / "w");
      return Value();
    };
    EXPECT_THAT(message_of<RuntimeError>([&] { strategy.extended().update(w, in_update); }),
                HasSubstr("is called inside update(), once for each component"));
    EXPECT_THAT(folder.files(""), IsEmpty());
    EXPECT_EQ(refused([&] {
                get_replica_context()->merge_call([&](Strategy&, const Value::Parts&) {
                  checkpoint.save(folder / "w");
                  return Value();
                });
              }),
              "no error");
    EXPECT_THAT(folder.files(""), ElementsAre("w"));
  });
}

TEST_P(Strategies, AManagerKeepsTheNewestCheckpointsOfAllWorkers) {
  const Folder folder;
  const std::string directory = folder / "new/managed";
  open_world(GetParam(), 3, 1)->run([&](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    const auto epoch = create_variable({.name = "epoch", .trainable = false});
    const auto w = strategy.create_variable({.name = "w", .shape = {2}});
    Checkpoint checkpoint(worker);
    checkpoint.add("epoch", epoch);
    checkpoint.add("w", w);
    int initialized = 0;
    CheckpointManager manager(checkpoint, directory, {.max_to_keep = 2, .init_fn = [&] { ++initialized; }});
    EXPECT_EQ(manager.restore_or_initialize(), std::nullopt);
    EXPECT_EQ(initialized, 1);
    EXPECT_EQ(manager.latest_checkpoint(), std::nullopt);
    EXPECT_EQ(latest_checkpoint(directory), std::nullopt);
    sum_over_workers(strategy, 0);
    for (int i = 1; i <= 4; ++i) {
      w->assign(Value(i));
      epoch->assign(Value(10 * i));
      EXPECT_EQ(manager.save(), directory + "/ckpt-" + std::to_string(i));
    }
    sum_over_workers(strategy, 0);
    EXPECT_THAT(folder.files("new/managed"), UnorderedElementsAre("checkpoint", "ckpt-3", "ckpt-4"));
    EXPECT_THAT(manager.checkpoints(), ElementsAre(directory + "/ckpt-3", directory + "/ckpt-4"));
    EXPECT_EQ(latest_checkpoint(directory), directory + "/ckpt-4");
    EXPECT_THAT(contents(directory + "/checkpoint"),
                HasSubstr("model_checkpoint_path: \"ckpt-4\"\nall_model_checkpoint_paths: \"ckpt-3\"\n"
                          "all_model_checkpoint_paths: \"ckpt-4\"\n"));

    w->assign(Value(0));
    epoch->assign(Value(0));
    CheckpointManager next(checkpoint, directory, {.max_to_keep = 2, .init_fn = [&] { ++initialized; }});
    EXPECT_EQ(next.restore_or_initialize(), directory + "/ckpt-4");
    EXPECT_EQ(initialized, 1);
    EXPECT_THAT(host_values(worker, w->components().front()), ElementsAre(4, 4));
    EXPECT_EQ(host_number(worker, epoch->read()), 40);
    sum_over_workers(strategy, 0);
    EXPECT_EQ(next.save(), directory + "/ckpt-5");
    EXPECT_EQ(next.save(9), directory + "/ckpt-9");
    EXPECT_EQ(next.save(), directory + "/ckpt-10");
    sum_over_workers(strategy, 0);
    EXPECT_THAT(folder.files("new/managed"), UnorderedElementsAre("checkpoint", "ckpt-9", "ckpt-10"));
  });
}

class CheckpointFolder : public Strategies {
 protected:
  using Test = std::function<void(const Checkpoint&, Variable&, const std::string& directory)>;
  void with_checkpoint(const Test& test) const {
    const Folder folder;
    run(1, [&](Worker& worker) {
      const auto v = create_variable({.name = "v"});
      Checkpoint checkpoint(worker);
      checkpoint.add("v", v);
      test(checkpoint, *v, folder / "d");
    });
  }
  static std::vector<std::string> names(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, CheckpointFolder, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(CheckpointFolder, IsReadableWheneverACrashComes) {
  with_checkpoint([](const Checkpoint& checkpoint, Variable& v, const std::string& directory) {
    CheckpointManager first(checkpoint, directory, {.max_to_keep = 2});
    for (int i = 1; i <= 2; ++i) {
      v.assign(Value(i));
      first.save();
    }
    // After the third checkpoint's file, before the state: it is not known, and the next one of its number replaces it.
    fs::copy_file(directory + "/ckpt-1", directory + "/ckpt-3");
    write(directory + "/ckpt-4.new-123", "half of a checkpo");
    CheckpointManager second(checkpoint, directory, {.max_to_keep = 2});
    EXPECT_EQ(second.restore_or_initialize(), directory + "/ckpt-2");
    v.assign(Value(3));
    EXPECT_EQ(second.save(), directory + "/ckpt-3");
    EXPECT_EQ(CheckpointReader(directory + "/ckpt-3").initial_value("v")(0), 3);
    EXPECT_THAT(names(directory), ElementsAre("checkpoint", "ckpt-2", "ckpt-3", "ckpt-4.new-123"));
    // After the state, before the oldest was deleted: the next save() deletes it. And half way in that.
    for (const bool is_deleted : {false, true}) {
      const std::string kept = is_deleted ? "ckpt-2" : "ckpt-1";
      fs::copy_file(directory + "/ckpt-3", directory + "/ckpt-1", fs::copy_options::overwrite_existing);
      write(directory + "/checkpoint",
            "model_checkpoint_path: \"ckpt-3\"\nall_model_checkpoint_paths: \"ckpt-1\"\n"
            "all_model_checkpoint_paths: \"ckpt-2\"\nall_model_checkpoint_paths: \"ckpt-3\"\n");
      if (is_deleted) fs::remove(directory + "/ckpt-1");
      CheckpointManager third(checkpoint, directory, {.max_to_keep = 2});
      EXPECT_EQ(third.restore_or_initialize(), directory + "/ckpt-3");
      EXPECT_EQ(third.save(3), directory + "/ckpt-3");
      EXPECT_THAT(names(directory), ElementsAre("checkpoint", "ckpt-2", "ckpt-3", "ckpt-4.new-123"));
    }
  });
}

TEST_P(CheckpointFolder, KeepsSomeForGoodAndSavesAtIntervals) {
  with_checkpoint([](const Checkpoint& checkpoint, Variable&, const std::string& directory) {
    const auto step = create_variable({.name = "step", .dtype = DType::i64});
    const auto files_after = [&](double hours, const std::string& name) {
      const std::string own = directory + name;
      CheckpointManager manager(checkpoint, own,
                                {.max_to_keep = 1, .keep_checkpoint_every_n_hours = hours, .checkpoint_name = "model"});
      for (int i = 0; i < 3; ++i) {
        step->assign_add(Value(1));
        host_number(checkpoint.worker(), step->read());  // time passes
        manager.save();
      }
      EXPECT_THAT(manager.checkpoints(), ElementsAre(own + "/model-3"));
      return names(own);
    };
    EXPECT_THAT(files_after(1000, "rarely"), ElementsAre("checkpoint", "model-3"));
    EXPECT_THAT(files_after(1e-15, "often"), ElementsAre("checkpoint", "model-1", "model-2", "model-3"));

    CheckpointManager manager(checkpoint, directory, {.step_counter = step, .checkpoint_interval = 10});
    std::vector<int> saved;
    for (int i = 0; i <= 25; ++i) {
      step->assign(Value(i));
      if (manager.save()) saved.push_back(i);
    }
    EXPECT_THAT(saved, ElementsAre(0, 10, 20));
    EXPECT_EQ(manager.save(std::nullopt, false), directory + "/ckpt-4");
  });
}

TEST_P(CheckpointFolder, RefusesDamagedStatesAndBadOptions) {
  with_checkpoint([](const Checkpoint& checkpoint, Variable&, const std::string& directory) {
    fs::create_directories(directory);
    const std::string file = directory + "/checkpoint";
    const auto refusal = [&](const std::string& text) {
      write(file, text);
      return message_of<DataLossError>([&] { CheckpointManager(checkpoint, directory); });
    };
    const std::string latest = "model_checkpoint_path: \"ckpt-1\"\n";
    EXPECT_EQ(refusal(""), file + ":0: damaged state of checkpoints: it has no model_checkpoint_path");
    EXPECT_EQ(refusal(latest + "all_model_checkpoint_paths: \"ckpt"),
              file + ":2: damaged state of checkpoints: a checkpoint's name is in double quotes");
    EXPECT_THAT(refusal(latest + "all_mod"), HasSubstr(":2: damaged state of checkpoints: a line is 'key: value'"));
    EXPECT_THAT(refusal(latest + latest),
                HasSubstr(":2: damaged state of checkpoints: model_checkpoint_path is there"));
    EXPECT_THAT(refusal(latest + "paths: 3"), HasSubstr("unknown key 'paths' (model_checkpoint_path, "));
    EXPECT_THAT(refusal(latest + "last_preserved_timestamp: soon"), HasSubstr("'soon' is no timestamp"));
    EXPECT_THAT(refusal(latest + "all_model_checkpoint_timestamps: 1"), HasSubstr("0 checkpoints have 1 timestamps"));
    EXPECT_THAT(message_of<DataLossError>([&] { latest_checkpoint(directory); }), HasSubstr("damaged state"));
    write(file, latest);
    EXPECT_EQ(message_of<NotFoundError>([&] { latest_checkpoint(directory); }),
              file + " names the checkpoint " + directory + "/ckpt-1, which is not there");
    EXPECT_THAT(message_of<NotFoundError>([&] { CheckpointManager(checkpoint, directory).restore_or_initialize(); }),
                HasSubstr("ckpt-1: no such checkpoint"));
    const auto bad = [&](const CheckpointManagerOptions& options) {
      return message_of<ValueError>([&] { CheckpointManager(checkpoint, directory, options); });
    };
    EXPECT_EQ(bad({.max_to_keep = 0}), "max_to_keep is 0; it must be positive, or empty to keep all");
    EXPECT_EQ(bad({.keep_checkpoint_every_n_hours = -1}), "keep_checkpoint_every_n_hours is -1; it must be positive");
    EXPECT_EQ(bad({.checkpoint_interval = 5}), "a checkpoint_interval needs a step_counter");
    write(directory + "/plain", "");
    EXPECT_THAT(message_of<UnknownError>([&] { CheckpointManager(checkpoint, directory + "/plain/d").save(); }),
                HasSubstr("plain/d: Not a directory"));
  });
}

}  // namespace
}  // namespace tandem
