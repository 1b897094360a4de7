// The whole tandem command, with the strategies that are linked in.
#include "cli/command_line.h"

int main(int argc, char** argv) {
  return tandem::run_command_line(argc, argv);
}
