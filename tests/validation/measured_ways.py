#!/usr/bin/env python3
"""Prints which of two ways to train is predicted to be faster, beside what was measured.

    tests/validation/measured_ways.py build/release/cli/tandem --write docs/fidelity/plans.md

Pairs are of the same model, batch and machine, and differ in the strategy, in how gradients are added up, or in the layout. They are those of
tests/validation/ways, and rows of tests/validation/training that belong together. Takes two minutes.
"""
import argparse
import collections
import itertools
import json
import pathlib
import tempfile

import published_layouts
from published_layouts import TRAINING, Tandem, scenario_of

WAYS = pathlib.Path(__file__).parent / "ways/ways.json"
# Of tables that do not state how far repeated measurements are apart.
LITTLE_NOISE = 0.01
SERVER_STEPS = {"steps": 12, "warmup_steps": 4}  # as in scenarios/validation/server_training.cc

# `ways` are (name, scenario, measured throughput), in any unit.
Case = collections.namedtuple("Case", "group name noise ways")


def merged(first, second):
    result = dict(first)
    for key, value in second.items():
        result[key] = merged(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
    return result


def cases_of_file():
    for group in json.loads(WAYS.read_text()):
        for case in group["cases"]:
            common = merged({"schema_version": 1, "name": case["name"], "engine": {"name": "sim"}, "steps": 2, "warmup_steps": 1},
                            merged(group["scenario"], case["set"]))
            yield Case("strategies", case["name"], group["noise"],
                       [(name, merged(common, way), case["measured"][name]) for name, way in group["ways"].items()])


def buckets():
    """PyTorch's two sizes of gradient buckets."""
    path = TRAINING / "pytorch_ddp_benchmark_dgx1_v100.json"
    document = json.loads(path.read_text())
    rows = collections.defaultdict(list)
    for table in document["tables"]:
        for row in table["rows"]:
            if row["devices"] > 1:
                workload = dict(table["workload"], batch=table["workload"]["batch"] * row["devices"])
                name = f"{workload['model']}, {row['devices']} V100 in {row['nodes']} DGX-1"
                scenario = scenario_of(name, path, document["topology"], row, workload, {"name": document["strategy"]})
                rows[name].append((f"buckets of {workload['bucket_bytes']}", scenario, row["throughput"]))
    return [Case("buckets", name, LITTLE_NOISE, ways) for name, ways in rows.items()]


def servers():
    """One or two parameter servers."""
    path = TRAINING / "cmdare_parameter_server.json"
    document = json.loads(path.read_text())
    rows = collections.defaultdict(list)
    for table in document["tables"]:
        for row in table["rows"]:
            count, workers = table["parameter_servers"], row["devices"]
            workload = dict(table["workload"], batch=table["workload"]["batch"] * workers)
            name = f"{workload['model']}, {workers} worker{'s' * (workers > 1)} with a {table['topology']['node'].split('-')[-1].upper()}"
            scenario = scenario_of(name, path, table["topology"], dict(row, nodes=workers), workload, {"name": document["strategy"]})
            scenario["topology"]["cluster"]["workers"] = workers + count
            scenario["devices"]["ps"] = count
            rows[name].append((f"{count} parameter server{'s' * (count > 1)}", dict(scenario, **SERVER_STEPS), row["throughput"]))
    return [Case("parameter servers", name, 0.03, ways) for name, ways in rows.items() if len(ways) > 1]


def layouts():
    """Layouts of language models that one source measured at the same batch."""
    for question in published_layouts.questions():
        for first, second in itertools.combinations(question.layouts, 2):
            if first.strategy == second.strategy:
                continue
            ways = [(published_layouts.layout_text(one.strategy, one.workload["batch"], "false"),
                     dict(question.scenario, strategy=one.strategy,
                          workload=dict(question.scenario["workload"], sequence_parallel=one.workload.get("sequence_parallel", False))),
                     one.throughput) for one in (first, second)]
            yield Case("layouts", question.name, LITTLE_NOISE, ways)


def judged(tandem, case, predicted):
    for name, scenario, _ in case.ways:
        key = json.dumps(scenario)
        if key not in predicted:
            point = tandem.point(scenario, {"workload.batch": scenario["workload"]["batch"]}, f"way{len(predicted)}")
            if point["state"] != "done":
                raise SystemExit(f"{case.name}, {name}: {point['problem']}")
            predicted[key] = point["throughput"]["value"]
    (first, one, measured_first), (second, other, measured_second) = case.ways
    ratio, expected = measured_first / measured_second, predicted[json.dumps(one)] / predicted[json.dumps(other)]
    return {"group": case.group, "name": case.name, "first": first, "second": second, "measured": ratio, "predicted": expected,
            "differs": max(ratio, 1 / ratio) > 1 + case.noise, "noise": case.noise, "is_right": (ratio > 1) == (expected > 1)}


MARK = "<!-- ways -->"
HEADS = ["of", "case", "pair", "measured ratio", "predicted ratio", "noise", ""]
# Cases that take a second together.
QUICK = ("strategies: VGG-16, 2 Titan X", "strategies: ResNet-101, 4 servers", "buckets: resnet50, 2 V100")


def row_of(one):
    verdict = "within noise" if not one["differs"] else "right" if one["is_right"] else "wrong"
    return [one["group"], one["name"], f"{one['first']} : {one['second']}", f"{one['measured']:.3f}", f"{one['predicted']:.3f}",
            f"{100 * one['noise']:.0f} %", verdict]


def summary_of(found):
    groups = collections.defaultdict(list)
    for one in found:
        if one["differs"]:
            groups[one["group"]].append(one["is_right"])
    counted = [right for rights in groups.values() for right in rights]
    by_group = ", ".join(f"{group} {sum(rights)} of {len(rights)}" for group, rights in groups.items())
    return (f"{sum(counted)} of {len(counted)} pairs that differ by more than the noise are predicted in the right order "
            f"({100 * sum(counted) / len(counted):.0f} %): {by_group}. {len(found) - len(counted)} more are within the noise.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("--only", default="", help="cases with this text in their names")
    parser.add_argument("--write", help="the page that gets the table")
    parser.add_argument("--self-test", action="store_true")
    choices = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tandem, predicted, found = Tandem(choices.tandem, folder, None, 1), {}, []
        for case in itertools.chain(cases_of_file(), buckets(), servers(), layouts()):
            name = f"{case.group}: {case.name}"
            if choices.only in name and (not choices.self_test or name.startswith(QUICK)):
                found.append(judged(tandem, case, predicted))
                print(" | ".join(row_of(found[-1])), flush=True)
        if choices.self_test:
            return published_layouts.check_page([row_of(one) for one in found], len(QUICK), published_layouts.PAGE.read_text())
        print("\n" + summary_of(found))
        if choices.write:
            page = pathlib.Path(choices.write)
            text = summary_of(found) + "\n\n" + published_layouts.table_of([row_of(one) for one in found], HEADS)
            page.write_text(published_layouts.with_text(page.read_text(), MARK, text))


if __name__ == "__main__":
    main()
