// What bash would make of a script: only its own variables have values.
#include "scenarios/import/shell/shell_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The words of each command, with blanks between them.
std::vector<std::string> commands(const std::string& text) {
  std::vector<std::string> result;
  for (const ShellCommand& command : read_shell_script(text, "x.sh").commands) {
    std::string line;
    for (const ShellWord& word : command) line += (line.empty() ? "" : " ") + word.shown;
    result.push_back(line);
  }
  return result;
}

std::vector<std::string> notes(const std::string& text) {
  return read_shell_script(text, "x.sh").notes;
}

TEST(ShellScript, WordsEndAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(commands("a 'b  c' \"d e\"f\\ g # h\n i;j & k"), ElementsAre("a b  c d ef g", "i", "j", "k"));
  EXPECT_THAT(commands("a \\\n  b \\  \n  c \\\r\n d"), ElementsAre("a b c d"));
  EXPECT_THAT(commands("a > out 2>&1 < in b\na &> log"), ElementsAre("a b", "a"));
  EXPECT_THAT(commands("cat <<EOF > f\nx --num-layers\nEOF\nb"), ElementsAre("cat", "b"));
  EXPECT_THROW(commands("a \"b"), InputError);
}

TEST(ShellScript, VariablesAreReplaced) {
  EXPECT_THAT(commands("A=1 B=$A\nC=\"$A-${B}x\"\nx $A $C ${D:-4} ${D-5} ${A:+6} ${E:-$A}"),
              ElementsAre("x 1 1-1x 4 5 6 1"));
  EXPECT_THAT(commands("A='b c'\nx $A \"$A\" '$A'"), ElementsAre("x b c b c $A"));
  EXPECT_THAT(commands("A=1\nA+=2\nx $A"), ElementsAre("x 12"));
  EXPECT_THAT(commands("export A=1\ndeclare -i B=2\nx $A$B"), ElementsAre("export", "declare -i", "x 12"));
  EXPECT_THAT(commands("F=/a/b.c.d\nx ${F##*/} ${F%.*} ${F%%.*} ${F#/}"), ElementsAre("x b.c.d /a/b.c /a/b a/b.c.d"));
  EXPECT_THAT(commands("x $NONE ${NONE} $1"), ElementsAre("x $NONE ${NONE} $1"));
}

TEST(ShellScript, ArraysKeepTheirElements) {
  EXPECT_THAT(commands("A=(\n  --a 1 # one\n  --b 'c d'\n)\nA+=(--e)\nx \"${A[@]}\" ${A[1]} ${#A[@]}"),
              ElementsAre("x --a 1 --b c d --e 1 5"));
  const ShellScript script = read_shell_script("A=(\n  --a 1\n  --b 2\n)\nx ${A[@]}", "x.sh");
  EXPECT_EQ(script.commands.front()[3].line, 3);
  EXPECT_EQ(script.commands.front()[3].column, 3);
}

TEST(ShellScript, ArithmeticIsEvaluated) {
  EXPECT_THAT(
      commands("A=3 B=4\nx $((A * B + 2)) $(($A*($B-1))) $((7 / 2 % 2)) $((2 ** 10)) $(expr $A \\* $B) $((-A))"),
      ElementsAre("x 14 9 1 1024 12 -3"));
  EXPECT_THAT(commands("((A = 3 * 2))\nx $A $(( ($A > 1) ? 4 : 5 ))"), ElementsAre("x 6 4"));
  EXPECT_THAT(commands("x $((A * 2)) $((1 / 0)) $(nproc)"), ElementsAre("x $((A * 2)) $((1 / 0)) $(nproc)"));
}

TEST(ShellScript, ConditionsChooseBranches) {
  const std::string choose =
      "if [ \"$M\" == 7b ]; then\n  L=32\nelif [[ $M = 13* && -n $M ]]; then\n  L=40\nelse\n  L=80\nfi\nx $L";
  EXPECT_THAT(commands("M=7b\n" + choose), ElementsAre("x 32"));
  EXPECT_THAT(commands("M=13b\n" + choose), ElementsAre("x 40"));
  EXPECT_THAT(commands("M=70b\n" + choose), ElementsAre("x 80"));
  EXPECT_THAT(commands("N=2\n[ $N -gt 1 ] && x a || x b\n[ ! $N -gt 1 ] && x c\n[ -z \"$U\" ] && x d"),
              ElementsAre("x a", "x d"));
  EXPECT_THAT(commands("M=b\ncase $M in\n  a) x 1 ;;\n  b|c)\n    x 2\n    ;;\n  *) x 3 ;;\nesac"), ElementsAre("x 2"));
  EXPECT_THAT(commands("for i in 1 2; do\n  x $i\ndone\ny"), ElementsAre("x 1", "x 2", "y"));
  EXPECT_THAT(commands("while [[ $# -gt 0 ]]; do\n  case $1 in --a) A=$2; shift 2 ;; esac\ndone\nx"), ElementsAre("x"));
  EXPECT_THAT(commands("f() {\n  x $A\n}\nfunction g { y; }\nA=1\nf\ng"), ElementsAre("x 1", "y"));
}

TEST(ShellScript, WhatCannotBeDecidedIsNamed) {
  EXPECT_THAT(notes("a\nif [ -f b ]; then\n c\nfi"),
              ElementsAre("line 2: whether -f b holds cannot be seen in this file: taken as false"));
  EXPECT_THAT(notes("S=$1\nif [ \"$S\" = big ]; then c; fi"),
              ElementsAre("line 2: $1 has no value in this file: taken as empty"));
  EXPECT_THAT(notes("source env.sh"), ElementsAre("line 1: the file env.sh is not read"));
  EXPECT_THAT(notes("cat <<E\n--num-layers 2\nE"), ElementsAre("line 1: the lines of a here-document are not read"));
  EXPECT_THAT(notes("a\n[ -z \"$B\" ] && c"), IsEmpty());
}

TEST(ShellScript, StringsAreScripts) {
  EXPECT_THAT(commands("A='x --b 1'\neval $A"), ElementsAre("x --b 1"));
  EXPECT_THAT(commands("A='x $B --c 1\n --d $(e f) 2'\neval $A"), ElementsAre("x $B --c 1 --d $(e f) 2"));
  EXPECT_THAT(commands("A=\"x $B --c 1\n --d $(e f) 2\"\neval ${A} | tee log"),
              ElementsAre("x $B --c 1 --d $(e f) 2", "tee log"));
  EXPECT_THAT(commands("A=2\nsrun bash -c \"x $A\""), ElementsAre("x 2", "srun bash -c x 2"));
  EXPECT_THAT(commands("#SBATCH --nodes=4 --gres=gpu:8\nx $SLURM_NNODES ${SLURM_GPUS_ON_NODE}"), ElementsAre("x 4 8"));
}

TEST(ShellScript, NothingGoesOnForEver) {
  std::string text = "f0() { A=1; }\n";
  for (int i = 1; i < 50; ++i)
    text += "f" + std::to_string(i) + "() { f" + std::to_string(i - 1) + "; f" + std::to_string(i - 1) + "; }\n";
  EXPECT_THAT(notes(text + "f49\n"), testing::Contains(HasSubstr("the script goes on for too long")));
  const std::string loop = "for i in $L; do for j in $L; do for k in $L; do x $i; done; done; done\n";
  EXPECT_THAT(
      notes("L='1 2 3 4 5 6 7 8 9 0 a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 0'\n" + loop),
      testing::Contains(HasSubstr("the script goes on for too long")));
  std::string sums = "a8=1\n";  // 20^7 operands
  for (int i = 1; i < 8; ++i) {
    sums += "a" + std::to_string(i) + "='";
    for (int term = 0; term < 20; ++term) sums += (term > 0 ? "+a" : "a") + std::to_string(i + 1);
    sums += "'\n";
  }
  EXPECT_FALSE(read_shell_script(sums + "x $((a1))\n", "x.sh").commands.empty());
  EXPECT_THROW(read_shell_script("A=" + std::string(100'000, 'a') + "\nx " +
                                     std::string(2000, '#').replace(0, 2000, "$A$A$A$A$A$A$A$A$A$A$A$A"),
                                 "x.sh"),
               InputError);
}

TEST(ShellScript, NothingUnbalancedHangs) {
  for (const char* text : {"if",
                           "if [ a",
                           "case a in",
                           "for",
                           "((",
                           "$((",
                           "${",
                           "a() {",
                           "}",
                           ") )",
                           "fi done esac",
                           "A=(",
                           "A=( (",
                           "`",
                           "<<",
                           "f() { f; }\nf",
                           "[[ ! ! ! ( ( a",
                           "x ${#}",
                           "x ${#@} ${#*}",
                           "a=()\nx ${#a} ${#a[0]} ${#a[@]}",
                           "eval 'x \"'",
                           "${",
                           "$("}) {
    try {
      read_shell_script(text, "x.sh");
    } catch (const InputError&) {
      // A quotation that is not closed.
    }
  }
  EXPECT_THAT(commands("f() { f; }\nf\nx"), testing::Contains("x"));
  EXPECT_THAT(commands("eval 'y \"'\nx"), testing::Contains("x"));
  EXPECT_THAT(notes("eval 'y \"'\nx"), testing::Contains(HasSubstr("line 1: a string that is executed is not read")));
}

}  // namespace
}  // namespace tandem
