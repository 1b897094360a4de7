#!/bin/sh
# Formatting by .clang-format. Exit code 77 (skipped) where clang-format is not installed.
set -eu
cd "$1"
command -v clang-format >/dev/null 2>&1 || { echo "skipped: clang-format is not installed"; exit 77; }
find topologies engine strategies reports scenarios cli tests -name '*.h' -o -name '*.cc' | sort |
  xargs clang-format --dry-run --Werror
echo "format: clean"
