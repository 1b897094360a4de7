#!/usr/bin/env python3
"""What `tandem check --against` is worth on this machine: how often it is wrong about equal programs, and how often it
finds a change that is there. Prints a table in Markdown.

  gate_table.py --program tandem-variant [--scenario FILE] [--checks N] [--neighbours K [--memory]] [--lines FILE]

The compared programs are tandem-variant, with TANDEM_VARIANT as varied_mirrored.cc describes. How many passes are 2, 5 and
10 % of the processor time of a step is measured first, at that time on that machine. Checks of all rows grow together. With
--lines, each check is a line of JSON in FILE, and a call that was ended goes on where it was.
"""
import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = ["A/A", "+2 % CPU", "+5 % CPU", "+10 % CPU", "one copy", "one message"]
MARGIN = 0.03  # the default of tandem check: smaller changes are none
SHARES = {"+2 % CPU": 0.02, "+5 % CPU": 0.05, "+10 % CPU": 0.10}


def fail(text):
    sys.exit("gate_table.py: " + text)


def wrapper(folder, name, program, variant):
    """A program that runs tandem-variant as that variant."""
    path = Path(folder) / name
    path.write_text(f"#!/bin/sh\nexec env TANDEM_VARIANT={variant} '{program}' \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def step_cpu(program, scenario, steps):
    """Nanoseconds of processor time of a measured step."""
    result = subprocess.run([program, "run", scenario, "--json", "--quiet", *steps], capture_output=True, text=True)
    if result.returncode != 0:
        fail(f"{program} run ended with {result.returncode}: {result.stderr}")
    report = json.loads(result.stdout)
    return report["machine_use"]["own_ns"] / (report["steps"] - report["warmup_steps"])


def passes_of_shares(folder, args, settings):
    """How many passes are each share of a step. Launches of both amounts take turns, so that drift meets all alike."""
    probe = args.probe_passes
    programs = {amount: wrapper(folder, f"probe-{amount}", args.program, f"cpu:{amount}") for amount in (0, probe)}
    times = {amount: [] for amount in programs}
    for _ in range(args.launches):
        for amount, program in programs.items():
            times[amount].append(step_cpu(program, args.scenario, settings))
    base, more = (statistics.median(times[amount]) for amount in (0, probe))
    spread = statistics.pstdev(times[0]) / base
    print(f"a step uses {base / 1e6:.3f} ms of processor time (deviation {spread:.1%} over {args.launches} launches), "
          f"{probe} passes add {(more - base) / 1e6:.3f} ms", file=sys.stderr)
    if more <= base:
        fail(f"{probe} passes take no processor time that can be measured; give more by --probe-passes")
    return {row: max(1, round(share * base / ((more - base) / probe))) for row, share in SHARES.items()}


def upper_bound(events, trials, confidence=0.95):
    """The exact one-sided upper bound of a share (Clopper and Pearson), by bisection."""
    if trials == 0 or events >= trials:
        return 1.0

    def at_most(share):
        return sum(math.exp(math.lgamma(trials + 1) - math.lgamma(k + 1) - math.lgamma(trials - k + 1)
                            + k * math.log(share) + (trials - k) * math.log1p(-share)) for k in range(events + 1))

    low, high = events / trials, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if middle <= 0 or middle >= 1 or at_most(middle) < 1 - confidence:
            high = middle
        else:
            low = middle
    return high


def busy(parent, memory):
    """A neighbour: computes, and with memory also writes more than caches hold. Ends with its parent."""
    block = bytearray(64 << 20) if memory else bytearray(4096)
    copy = bytes(len(block))
    while os.getppid() == parent:
        for _ in range(1 if memory else 100_000):
            block[:] = copy


@contextlib.contextmanager
def neighbours(count, memory):
    command = [sys.executable, __file__, "--busy", str(os.getpid()), *(["--memory"] if memory else [])]
    running = [subprocess.Popen(command) for _ in range(count)]
    try:
        if running:
            time.sleep(1)
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def check(new, old, args, seed, settings):
    begin = time.monotonic()
    command = [new, "check", args.scenario, "--against", old, "--json", "--quiet", "--seed", str(seed), *settings]
    result = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - begin
    if result.returncode not in (0, 1, 6):
        fail(f"the check ended with {result.returncode}: {result.stderr}")
    document = json.loads(result.stdout)
    return {"verdict": document["verdict"], "decided_by": document["decided_by"], "pairs": document["pairs"],
            "cpu_change": document.get("cpu_change", {}).get("estimate"), "change": document["change"]["estimate"],
            "disturbed": document["disturbance"]["disturbed"], "seconds": round(seconds, 2)}


def kind_of(row, verdict):
    """Says whether a verdict is right, false, missed or undecided."""
    if verdict == "inconclusive":
        return "undecided"
    if SHARES.get(row, 1 if row != "A/A" else 0) < MARGIN:
        return "right" if verdict == "ok" else "false"
    return {"regressed": "right", "improved": "false", "ok": "missed"}[verdict]


def cell(kinds, kind):
    count = kinds.count(kind)
    return f"{count} of {len(kinds)} (below {upper_bound(count, len(kinds)):.1%})"


def table(results, condition):
    lines = [f"Beside {condition}. Bounds are exact, one-sided, at 95 %. A change of 2 % is within the default margin of 3 %,"
             " so that only \"ok\" is right for it.", "",
             "| program | false verdicts | missed | undecided | decided by | seconds, median and most |",
             "|---|---|---|---|---|---|"]
    for row in ROWS:
        mine = [one for one in results if one["row"] == row]
        if not mine:
            continue
        kinds = [kind_of(row, one["verdict"]) for one in mine]
        by = ", ".join(f"{name} {sum(one['decided_by'] == name for one in mine)}"
                       for name in sorted({one["decided_by"] for one in mine}))
        seconds = [one["seconds"] for one in mine]
        lines.append(f"| {row} | {cell(kinds, 'false')} | {cell(kinds, 'missed')} | {cell(kinds, 'undecided')} | {by} | "
                     f"{statistics.median(seconds):.1f}, {max(seconds):.1f} |")
    return "\n".join(lines)


def read_lines(path, condition):
    if not path or not Path(path).exists():
        return []
    with open(path) as file:
        return [one for one in map(json.loads, file) if one["condition"] == condition]


def self_test(args):
    """Exact counts do not depend on the machine: a copy and a message more are always found, in one pair."""
    settings = ["--set", "steps=4", "--set", "warmup_steps=2"]
    assert abs(upper_bound(0, 200) - (1 - 0.05 ** (1 / 200))) < 1e-6
    assert upper_bound(3, 3) == 1 and kind_of("A/A", "regressed") == "false" and kind_of("+5 % CPU", "ok") == "missed"
    with tempfile.TemporaryDirectory() as folder, neighbours(1, False):
        none = wrapper(folder, "none", args.program, "none")
        for variant in ("copy", "message"):
            found = check(wrapper(folder, variant, args.program, variant), none, args, 1, settings)
            assert found["verdict"] == "regressed" and found["decided_by"] == "counts" and found["pairs"] == 1, found
        # More passes are no other count, so that only times can tell.
        for variant in ("none", "cpu:1000"):
            found = check(wrapper(folder, "same", args.program, variant), none, args, 1, [*settings, "--gate", "counts"])
            assert found["verdict"] == "ok" and found["pairs"] == 1, found
        assert step_cpu(none, args.scenario, settings) > 0
    print("gate_table: as expected")


def measure(args):
    condition = f"{args.neighbours} busy neighbours" + (" with memory traffic" if args.memory else "")
    results = read_lines(args.lines, condition)
    with tempfile.TemporaryDirectory() as folder, neighbours(args.neighbours, args.memory):
        none = wrapper(folder, "none", args.program, "none")
        programs = {"A/A": none}
        if args.checks > 0:
            amounts = passes_of_shares(folder, args, [])
            for row, passes in amounts.items():
                programs[row] = wrapper(folder, f"cpu-{passes}", args.program, f"cpu:{passes}")
            for row, variant in (("one copy", "copy"), ("one message", "message")):
                programs[row] = wrapper(folder, variant, args.program, variant)
        for number in range(args.checks):
            for row in ROWS:
                if args.rows and row not in args.rows or sum(one["row"] == row for one in results) > number:
                    continue
                one = {"condition": condition, "row": row, "seed": number + 1, "passes": amounts.get(row, 0),
                       **check(programs[row], none, args, number + 1, [])}
                results.append(one)
                print(json.dumps(one), file=sys.stderr)
                if args.lines:
                    with open(args.lines, "a") as file:
                        file.write(json.dumps(one) + "\n")
    print(table(results, condition))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="tandem-variant")
    parser.add_argument("--scenario", default=str(Path(__file__).parent / "varied.yaml"))
    parser.add_argument("--checks", type=int, default=200, help="for each row")
    parser.add_argument("--rows", nargs="*", choices=ROWS, help="only these")
    parser.add_argument("--neighbours", type=int, default=0, help="busy loops that run meanwhile")
    parser.add_argument("--memory", action="store_true", help="neighbours copy 64 MiB in memory all the time")
    parser.add_argument("--lines", help="a file of results, which are continued")
    parser.add_argument("--launches", type=int, default=8, help="of each amount, to measure a step")
    parser.add_argument("--probe-passes", type=int, default=2000)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--busy", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.busy is not None:
        return busy(args.busy, args.memory)
    if not args.program or not Path(args.program).is_file():
        fail("--program needs the path of tandem-variant")
    args.program = str(Path(args.program).resolve())
    return self_test(args) if args.self_test else measure(args)


if __name__ == "__main__":
    main()
