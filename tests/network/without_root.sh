#!/bin/sh
# without_root.sh COMMAND...: runs the command as a user without rights, if this is root. Exits with 77, and says why, where
# that user cannot be, or cannot read a file that the command names.
set -u
[ "$(id -u)" = 0 ] || exec "$@"
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all"
for part; do
  if [ -e "$part" ] && ! reason=$($nobody test -r "$part" 2>&1); then
    echo "skipped: a user without rights cannot read $part${reason:+: $reason}"
    exit 77
  fi
done
HOME=/ exec $nobody "$@"
