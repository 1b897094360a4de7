#!/bin/sh
# Formatting by .clang-format, of version 14 (Debian 12's): others break lines elsewhere.
set -eu
cd "$1"
command -v clang-format >/dev/null 2>&1 || { echo "clang-format is not installed"; exit 1; }
find topologies engine strategies reports scenarios cli tests docs \
  -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' | sort | xargs clang-format --dry-run --Werror
echo "format: clean"
