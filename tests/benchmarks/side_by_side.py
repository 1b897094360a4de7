#!/usr/bin/env python3
"""Prints how far simulated steps are from measured ones on this machine's CPU devices, for strategies and devices.

    build/release/cli/tandem calibrate --quick -o machine.yaml
    tests/benchmarks/side_by_side.py build/release/cli/tandem machine.yaml

Takes five minutes, as each row is measured by three launches, which do not follow each other; the machine should be idle
otherwise. The rows are those of docs/fidelity.md.
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess

EXAMPLES = pathlib.Path(__file__).parents[2] / "scenarios/examples"
SHAPES = {"": [], ", layers of 128, 256, 128, batch 64": ["workload.hidden=[128,256,128]", "workload.batch=64"],
          ", batch 1,024": ["workload.batch=1024"],
          ", one layer of 1,024, batch 128": ["workload.hidden=[1024]", "workload.batch=128"]}
PARTS = ("compute", "update", "exposed_input", "exposed_communication", "other", "idle")
Row = collections.namedtuple("Row", "name example settings devices")


def rows():
    """All devices of a row compute at the same time, parameter servers included."""
    for shape, settings in SHAPES.items():
        for devices in (1, 2, 4):
            yield Row("digits" + shape, "digits", settings, devices)
    for devices in (1, 2, 4):
        yield Row("layers-small", "layers-small", [], devices)
    for name, settings in (("central storage", ["strategy.name=central_storage"]),
                           ("hierarchical copy", ["strategy.cross_device_ops=hierarchical_copy"])):
        for devices in (2, 4):
            yield Row("digits, " + name, "digits", settings, devices)
    for example in ("digits-fully-sharded", "digits-tensor-parallel", "digits-pipeline-parallel"):
        for devices in (2, 4):
            yield Row(example, example, [], devices)
    yield Row("mesh", "mesh", [], 8)
    yield Row("digits-multi-worker", "digits-multi-worker", [], 4)
    yield Row("digits-parameter-server", "digits-parameter-server", [], 3)


def compare(tandem, machine, row):
    own = row.example in ("mesh", "digits-multi-worker", "digits-parameter-server")
    settings = row.settings + ([] if own else [f"devices.per_worker={row.devices}"])
    command = [tandem, "compare", str(EXAMPLES / f"{row.example}.yaml"), "--device-type", "cpu", "--topology", machine,
               "--quiet", "--json"] + [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["comparisons"][0]


def time_of(comparison, side):
    return comparison[side]["step_time_ns"]["mean"]


def part_of(comparison):
    """The part that is farthest off, and its difference divided by the measured step."""
    measured, predicted = (comparison[side]["per_step_ns"] for side in ("measured", "predicted"))
    step = time_of(comparison, "measured")
    return max(((part, (predicted[part] - measured[part]) / step) for part in PARTS), key=lambda one: abs(one[1]))


def error_text(comparison):
    error = comparison["errors"]["step_time"]
    return "disturbed" if error is None else f"{100 * error:+.1f}"


def print_row(row, launches):
    """The launch whose measured step is the middle one, and the errors of all."""
    middle = sorted(launches, key=lambda one: time_of(one, "measured"))[len(launches) // 2]
    part, share = part_of(middle)
    times = [time_of(one, "measured") for one in launches]
    measured, predicted = (time_of(middle, side) / 1e6 for side in ("measured", "predicted"))
    print(f"| {row.name} | {row.devices} | {measured:.3f} ms | {predicted:.3f} ms | "
          f"{', '.join(map(error_text, launches))} | {100 * middle['noise']:.1f} % | "
          f"{100 * (max(times) / min(times) - 1):.0f} % | "
          f"{part.replace('_', ' ')} {100 * share:+.1f} |")


def print_summary(label, found):
    errors = [abs(100 * one["errors"]["step_time"]) for one in found if one["errors"]["step_time"] is not None]
    middle = [abs(100 * part_of(one)[1]) for one in found if one["errors"]["step_time"] is not None]
    if errors:
        print(f"{label}: {len(errors)} launches, error of the step mean {statistics.mean(errors):.1f} %, median "
              f"{statistics.median(errors):.1f} %, worst {max(errors):.1f} %; farthest part mean "
              f"{statistics.mean(middle):.1f} %, worst {max(middle):.1f} % of the step")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("machine", help="a calibrated topology")
    parser.add_argument("--launches", type=int, default=3)
    arguments = parser.parse_args()
    found = {row.name + str(row.devices): [] for row in rows()}
    for _ in range(arguments.launches):
        for row in rows():
            found[row.name + str(row.devices)].append(compare(arguments.tandem, arguments.machine, row))
    print("| scenario | devices | measured | simulated | errors, % | noise | launches apart | farthest part, % of the step |\n"
          "|---|---|---|---|---|---|---|---|")
    by_cores = {False: [], True: []}
    for row in rows():
        launches = found[row.name + str(row.devices)]
        print_row(row, launches)
        cores = launches[0]["measured"]["cores"]
        by_cores[cores["devices"] > cores["cores"]] += launches
    print_summary("a core for each device", by_cores[False])
    print_summary("more devices than cores", by_cores[True])


if __name__ == "__main__":
    main()
