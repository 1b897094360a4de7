#!/usr/bin/env python3
"""Prints how far simulated steps are from measured ones on this machine's CPU devices, for strategies and devices.

    build/release/cli/tandem calibrate --quick -o machine.yaml
    tests/benchmarks/side_by_side.py build/release/cli/tandem machine.yaml --write-bands reports/data/error_bands.json

Takes five minutes, as each row is measured by three launches, which do not follow each other; the machine should be idle
otherwise. The rows are those of docs/fidelity.md. --write-bands puts the 95th percentiles of the errors into the file on which
the error bands of predictions rest. `side_by_side.py --self-test` runs the tests of this script instead.
"""
import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

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
    for devices in (1, 2):
        yield Row("gpt-tiny", "gpt-tiny", [], devices)
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


def p95(values):
    """The smallest value that at least 95 % of the values do not exceed (nearest rank)."""
    return sorted(values)[(95 * len(values) + 99) // 100 - 1]


def write_bands(file, by_cores):
    """Puts the errors by whether there were more devices than cores into the file, beside what else it has."""
    known = json.loads(file.read_text())
    known["calibrated"] = []
    for is_short, launches in sorted(by_cores.items()):
        errors = [abs(one["errors"]["step_time"]) for one in launches if one["errors"]["step_time"] is not None]
        if errors:
            known["calibrated"].append(
                {"short_of_cores": is_short, "launches": len(errors), "p95": round(p95(errors), 3)})
    file.write_text(json.dumps(known, indent=2) + "\n")


def test():
    def launch(error):
        return {"errors": {"step_time": error}}

    assert p95([3, 1, 2]) == 3
    assert p95(range(1, 21)) == 19 and p95(range(1, 22)) == 20
    bands = pathlib.Path(__file__).parents[2] / "reports/data/error_bands.json"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "bands.json"
        file.write_text(bands.read_text())
        write_bands(file, {True: [launch(-0.2564)], False: [launch(0.01), launch(None), launch(-0.0312)]})
        written, before = json.loads(file.read_text()), json.loads(bands.read_text())
        assert written["published"] == before["published"]
        assert written["calibrated"] == [{"short_of_cores": False, "launches": 2, "p95": 0.031},
                                         {"short_of_cores": True, "launches": 1, "p95": 0.256}]
        written["calibrated"] = before["calibrated"]
        assert json.dumps(written, indent=2) + "\n" == bands.read_text(), "the form of the file is not this script's"


def main():
    if sys.argv[1:] == ["--self-test"]:
        return test()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("machine", help="a calibrated topology")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--write-bands", type=pathlib.Path, metavar="FILE")
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
    if arguments.write_bands:
        write_bands(arguments.write_bands, by_cores)


if __name__ == "__main__":
    main()
