#include "reports/base/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

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

// Returns the seconds that are said to be left.
double left_in(const std::string& line) {
  const std::size_t about = line.rfind("about ");
  return about == std::string::npos ? -1 : std::stod(line.substr(about + 6));
}

// A sweep asks for the line several times a second, whether or not a point has ended.
TEST(Progress, CountsFromTheBeginningHoweverOftenItIsTold) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    for (int tick = 0; tick < 400; ++tick, screen.now_s += 0.25) {
      progress.update("sweep: point", tick / 20, 20);
      if (tick < 40) continue;  // a tenth of the work
      const double left_s = (400 - tick) * 0.25;
      EXPECT_NEAR(left_in(screen.out.str()), left_s, std::max(1.0, left_s / 2)) << tick;
      screen.out.str("");
    }
  }
}

TEST(Progress, GoesOnCountingWhenOneStageOfAWorkFollowsAnother) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    for (int done = 1; done <= 100; ++done) {
      screen.now_s += 1;
      screen.out.str("");
      progress.update(done < 40 ? "calibrating, kernels" : "calibrating, collectives", done, 100);
      if (done < 10 || done == 100) continue;
      EXPECT_EQ(left_in(screen.out.str()), 100 - done) << done;
    }
  }
}

// The first step of a run includes its preparation.
TEST(Progress, DoesNotTakeThePreparationForAPart) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    progress.begin("run");
    screen.now_s += 50;
    for (int step = 1; step <= 10; ++step) {
      screen.now_s += 1;
      screen.out.str("");
      progress.update("run: step", step, 200);
      if (step == 1) continue;
      EXPECT_EQ(left_in(screen.out.str()), 200 - step);
    }
  }
}

TEST(Progress, ShowsTheTimeThatItsUserKnows) {
  Screen screen;
  {
    Progress progress = screen.progress(true);
    screen.now_s = 110;
    progress.update("sweep: point", 1, 10, 900);
    screen.now_s = 120;
    progress.update("sweep: point", 1, 10, Progress::kUnknown);
  }
  EXPECT_EQ(screen.out.str(),
            "\rsweep: point: 1 of 10, 10 s, about 900 s left\033[K\rsweep: point: 1 of 10, 20 s\033[K\r\033[K");
}

TEST(Progress, IsSilentWithoutAStream) {
  Progress progress({.stream = nullptr, .terminal = true, .now_s = [] { return 0.0; }});
  progress.update("run", 1, 2);
  progress.finish();
  SUCCEED();
}

}  // namespace
}  // namespace tandem
