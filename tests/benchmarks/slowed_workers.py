#!/usr/bin/env python3
"""Prints how much longer steps take where a worker is slowed down on purpose, measured and simulated.

    build/release/cli/tandem calibrate --quick -o machine.yaml
    OPENBLAS_NUM_THREADS=1 mpirun -n 2 build/release/cli/tandem calibrate --engine mpi -o cluster.yaml
    tests/benchmarks/slowed_workers.py build/release/cli/tandem machine.yaml cluster.yaml

Each factor is measured by five runs, which do not follow each other, beside as many without a fault; the machine should be idle
otherwise. Takes three minutes. The rows are those of docs/faults.md, and without cluster.yaml those of threads.
`slowed_workers.py --self-test` runs the tests of this script instead.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess

EXAMPLE = str(pathlib.Path(__file__).parents[2] / "scenarios/examples/slow-thread.yaml")
FACTORS = (1, 1.1, 1.5, 2)
RUNS = 5
RANKS = ["strategy.name=multi_worker_mirrored", "devices={per_worker: 1, workers: 2}"]


def steps_of(command, settings, device, factor):
    """The median and the shortest step of a run in which a device takes so many times as long, in ns."""
    faults = "~" if factor == 1 else f'[{{slow: {{device: "{device}", factor: {factor}}}}}]'
    words = command + ["--steps", "60", "--json", "--quiet"]
    for setting in settings + [f"faults={faults}"]:
        words += ["--set", setting]
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}\n{done.stderr}")
    step = json.loads(done.stdout)["step_time_ns"]
    return step["median"], step["min"]


def slowdowns(runs, undisturbed):
    """Of runs and those beside them: the ratios of the medians in rising order, and the ratio of the shortest steps."""
    ratios = sorted(one[0] / other[0] for one, other in zip(runs, undisturbed))
    return ratios, min(one[1] for one in runs) / min(one[1] for one in undisturbed)


def row_of(engine, factor, simulated, ratios, shortest):
    middle = statistics.median(ratios)
    return (f"| `{engine}` | {factor} | {simulated:.3f} | {shortest:.3f} | {middle:.3f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


def print_rows(engine, run, simulation, settings, device):
    measured = {factor: [] for factor in FACTORS}
    for _ in range(RUNS):
        for factor in FACTORS:
            inject = [] if factor == 1 else ["--inject"]
            measured[factor].append(steps_of(run + inject, settings, device, factor))
    predicted = {factor: steps_of(simulation, settings, device, factor)[0] for factor in FACTORS}
    for factor in FACTORS[1:]:
        print(row_of(engine, factor, predicted[factor] / predicted[1], *slowdowns(measured[factor], measured[1])))


def self_test():
    ratios, shortest = slowdowns([(30, 20), (20, 18), (44, 22)], [(10, 9), (10, 10), (20, 12)])
    assert ratios == [2, 2.2, 3], ratios
    assert shortest == 2, shortest
    assert row_of("cpu", 2, 1.98, ratios, shortest) == "| `cpu` | 2 | 1.980 | 2.000 | 2.200 (2.00 to 3.00) |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem", nargs="?")
    parser.add_argument("machine", nargs="?", help="a calibration of this machine")
    parser.add_argument("cluster", nargs="?", help="one of two ranks")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if arguments.machine is None:
        parser.error("expected the program and a calibration of this machine")
    run = [arguments.tandem, "run", EXAMPLE]
    print("| engine | factor | simulated | shortest steps | medians, least and greatest of five |\n|---|---|---|---|---|")
    print_rows("cpu", run, run + ["--engine", "sim", "--topology", arguments.machine], [], "worker:0/CPU:1")
    if arguments.cluster is not None:
        ranks = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"] + run + ["--engine", "mpi"]
        print_rows("mpi", ranks, run + ["--engine", "sim", "--topology", arguments.cluster], RANKS, "worker:1/CPU:0")
    return None


if __name__ == "__main__":
    main()
