#!/bin/sh
# How many sources a folder has, which folders include each other, and which units form knots. A unit is a header with the
# source of the same name; a knot is a set of units each of which includes every other, directly or not.
#
#   rooms.sh SOURCE_DIR            prints the figures, and what is over a limit
#   rooms.sh --list SOURCE_DIR     also every pair and knot
#
# The limits may only fall.
set -eu
list=0
if [ "$1" = --list ]; then list=1; shift; fi
cd "$1"
find topologies engine strategies reports scenarios cli -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' |
  LC_ALL=C sort | xargs -x -n 100000 awk -v list="$list" -v most_files=40 -v most_pairs=8 -v most_knots=12 -v most_in_knots=94 '
  function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
  function unit(path) { sub(/\.[a-z]*$/, "", path); return path }
  function fails(text) { print text; failed = 1 }

  # Tarjan: strongly connected components of units.
  function visit(u,    i, n, parts, v, members, size) {
    order[u] = low[u] = ++visited
    stack[++depth] = u; is_on_stack[u] = 1
    n = split(edges[u], parts, " ")
    for (i = 1; i <= n; ++i) {
      v = parts[i]
      if (!(v in order)) {
        visit(v)
        if (low[v] < low[u]) low[u] = low[v]
      } else if (is_on_stack[v] && order[v] < low[u]) low[u] = order[v]
    }
    if (low[u] != order[u]) return
    do {
      v = stack[depth--]; is_on_stack[v] = 0
      members = members " " v; ++size
    } while (v != u)
    if (size > 1) { ++knots; in_knots += size; if (list) print "knot of " size ":" members }
  }

  FNR == 1 { ++files[folder(FILENAME)]; units[unit(FILENAME)]; is_source[FILENAME] = 1 }
  /^#include "/ { split($0, quoted, "\""); includes[FILENAME, quoted[2]] }
  END {
    for (pair in includes) {
      split(pair, ends, SUBSEP)
      if (!(ends[2] in is_source)) continue
      from = folder(ends[1]); to = folder(ends[2])
      if (from != to) arrows[from, to]
      if (unit(ends[1]) != unit(ends[2])) edges[unit(ends[1])] = edges[unit(ends[1])] " " unit(ends[2])
    }
    for (arrow in arrows) {
      split(arrow, ends, SUBSEP)
      if (ends[1] < ends[2] && (ends[2] SUBSEP ends[1]) in arrows) {
        ++pairs
        if (list) print "pair: " ends[1] " " ends[2]
      }
    }
    for (u in units) if (!(u in order)) visit(u)
    for (f in files) {
      if (files[f] > largest || (files[f] == largest && f < where)) { largest = files[f]; where = f }
      if (files[f] > most_files) fails(f " has " files[f] " sources, at most " most_files)
    }
    print "rooms: up to " largest " sources in a folder (" where "), " pairs + 0 " pairs of folders that include each other, " knots + 0 " knots of " in_knots + 0 " units"
    if (pairs > most_pairs) fails("more pairs of folders include each other than " most_pairs " (rooms.sh --list names them)")
    if (knots > most_knots) fails("more knots than " most_knots " (rooms.sh --list names them)")
    if (in_knots > most_in_knots) fails("more units in knots than " most_in_knots " (rooms.sh --list names them)")
    exit failed
  }'
