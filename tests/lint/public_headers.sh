#!/bin/sh
# Prints the public headers of the repository in which it is called: those of cli/public_headers.txt.
set -eu
expand() {
  # shellcheck disable=SC2086
  sed -n "s|^$1\([a-z].*\)|\1|p" cli/public_headers.txt | while read -r pattern; do ls $pattern; done
}
private=$(expand '!')
expand '' | grep -vxF "$private" | LC_ALL=C sort -u
