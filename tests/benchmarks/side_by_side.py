#!/usr/bin/env python3
"""Prints how far simulated steps are from measured ones on this machine's CPU devices, for strategies and devices.

    build/release/cli/tandem calibrate --quick -o machine.yaml
    tests/benchmarks/side_by_side.py build/release/cli/tandem machine.yaml

Takes two minutes; the machine should be idle otherwise. The rows are those of docs/fidelity.md.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

EXAMPLES = pathlib.Path(__file__).parents[2] / "scenarios/examples"
SHAPES = {"": [], ", layers of 128, 256, 128, batch 64": ["workload.hidden=[128,256,128]", "workload.batch=64"],
          ", batch 1,024": ["workload.batch=1024"],
          ", one layer of 1,024, batch 128": ["workload.hidden=[1024]", "workload.batch=128"]}


def rows():
    """Yields a name, the example, settings, and the devices, all of which compute at the same time."""
    for shape, settings in SHAPES.items():
        for devices in (1, 2, 4):
            yield "digits" + shape, "digits", settings, devices
    for devices in (1, 2, 4):
        yield "layers-small", "layers-small", [], devices
    for name, settings in (("central storage", ["strategy.name=central_storage"]),
                           ("hierarchical copy", ["strategy.cross_device_ops=hierarchical_copy"]),
                           ("fully sharded", ["strategy.name=fully_sharded"]),
                           ("tensor parallel", ["strategy.name=tensor_parallel"]),
                           ("three layers, pipeline", ["strategy.name=pipeline_parallel", "strategy.micro_batches=4",
                                                       "workload.hidden=[512,512,512]"])):
        for devices in (2, 4):
            yield "digits, " + name, "digits", settings, devices
    yield "mesh", "mesh", [], 8
    yield "digits-multi-worker", "digits-multi-worker", [], 4
    yield "digits-parameter-server", "digits-parameter-server", [], 3


def compare(tandem, machine, example, settings, devices):
    own = example in ("mesh", "digits-multi-worker", "digits-parameter-server")
    settings = settings + ([] if own else [f"devices.per_worker={devices}"])
    command = [tandem, "compare", str(EXAMPLES / f"{example}.yaml"), "--device-type", "cpu", "--topology", machine,
               "--quiet", "--json"] + [word for setting in settings for word in ("--set", setting)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["comparisons"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("machine", help="a calibrated topology")
    arguments = parser.parse_args()
    errors = {False: [], True: []}
    print("| scenario | devices | measured | simulated | error | noise |\n|---|---|---|---|---|---|")
    for name, example, settings, devices in rows():
        found = compare(arguments.tandem, arguments.machine, example, settings, devices)
        error = found["errors"]["step_time"]
        measured, predicted = (found[side]["step_time_ns"]["mean"] / 1e6 for side in ("measured", "predicted"))
        shown = "disturbed" if error is None else f"{100 * error:+.1f} %"
        if error is not None:
            errors[devices > 2].append(abs(100 * error))
        print(f"| {name} | {devices} | {measured:.3f} ms | {predicted:.3f} ms | {shown} | "
              f"{100 * found['noise']:.1f} % |", flush=True)
    for more, label in ((False, "at most two"), (True, "more")):
        if errors[more]:
            print(f"{label}: mean {statistics.mean(errors[more]):.1f} %, worst {max(errors[more]):.1f} %")


if __name__ == "__main__":
    main()
