#include "reports/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tandem {
namespace {

struct Screen {
  std::ostringstream out;
  double now_s = 100;
  Progress progress(bool terminal) {
    return Progress({.stream = &out, .terminal = terminal, .now_s = [this] { return now_s; }});
  }
};

TEST(Progress, SaysNothingAboutWhatIsQuick) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    for (screen.now_s = 100; screen.now_s < 101.9; screen.now_s += 0.05) progress.update("run", 1, 2);
  }
  EXPECT_EQ(screen.out.str(), "");
}

TEST(Progress, RewritesOneLineAtMostTenTimesASecond) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    screen.now_s = 102.5;
    progress.update("run", 3, 9);
    screen.now_s = 102.55;
    progress.update("run", 4, 9);
    screen.now_s = 102.65;
    progress.update("run", 5, 0);
  }
  EXPECT_EQ(screen.out.str(), "\rrun: 3 of 9, 2 s, about 5 s left\033[K\rrun: 5, 3 s\033[K\r\033[K");
}

TEST(Progress, WritesAPlainLineEveryTenSecondsWhereNobodyRewrites) {
  Screen screen;
  {
    Progress progress = screen.progress(false);
    for (int step = 1; step <= 25; ++step) {
      screen.now_s = 100 + step;
      progress.update("run", step, 25);
    }
  }
  EXPECT_EQ(screen.out.str(), "run: 10 of 25, 10 s, about 15 s left\nrun: 20 of 25, 20 s, about 5 s left\n");
}

TEST(Progress, ShowsWorkThatTellsNothing) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    progress.begin("run");
    screen.now_s = 101.5;
    progress.tick();
    screen.now_s = 102.1;
    progress.tick();
    screen.now_s = 103;
    progress.update("run", 1, 4);
    screen.now_s = 106;
    progress.tick();
    progress.finish();
    screen.now_s = 107;
    progress.tick();
  }
  EXPECT_EQ(screen.out.str(),
            "\rrun: begins, 2 s\033[K\rrun: 1 of 4, 3 s, about 9 s left\033[K\rrun: 1 of 4, 6 s, about 18 s left\033[K"
            "\r\033[K");
}

TEST(Progress, ShowsPhasesUntilAStepIsDone) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    progress.begin("run");
    progress.phase("finds routes", false);
    screen.now_s = 102.4;
    progress.tick();
    screen.now_s = 103;
    progress.update("run: step", 1, 2);
    progress.phase("finds routes", false);
    screen.now_s = 104;
    progress.tick();
    progress.phase("begins, run 2", true);
    screen.now_s = 105;
    progress.tick();
    screen.now_s = 106;
    progress.update("run: step", 1, 2);
  }
  EXPECT_EQ(screen.out.str(),
            "\rrun: finds routes, 2 s\033[K\rrun: step: 1 of 2, 3 s, about 3 s left\033[K"
            "\rrun: step: 1 of 2, 4 s, about 4 s left\033[K\rrun: begins, run 2, 5 s\033[K"
            "\rrun: step: 1 of 2, 6 s, about 2 s left\033[K\r\033[K");
}

TEST(Progress, IsSilentWithoutAStream) {
  Progress progress({.stream = nullptr, .terminal = true, .now_s = [] { return 0.0; }});
  progress.update("run", 1, 2);
  progress.finish();
  SUCCEED();
}

}  // namespace
}  // namespace tandem
