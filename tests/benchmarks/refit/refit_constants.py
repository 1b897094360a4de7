#!/usr/bin/env python3
"""Fits the constants of the model of GPUs again, each time without the rows of one site, and predicts the rows of that site.

    tests/benchmarks/refit/refit_constants.py build/release --write docs/fidelity/constants.md

Builds tandem with constants from the environment (tests/benchmarks/refit), tries every combination of the values below, and puts the
tables into the page. It takes over half an hour on one core; what has been simulated is kept in the build folder.
`refit_constants.py --check docs/fidelity/constants.md` tells whether the page has the constants of the header and the catalog, and
`--self-test build/release/cli/tandem` tests the fit on rows that a constant of the catalog is known to have made.
"""
import argparse
import collections
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
from published_rows import ROOT, Simulation, one_gpu_rows, training_rows

HEADER = ROOT / "engine/sim/costs/kernel_constants.h"
CATALOG = ROOT / "topologies/catalog"
MOST_WORSE = 1.1  # times the least error: what still counts as equally good

A100 = ("dgx-a100", "dgx-a100-40gb", "oci-bm-gpu4-8")
NEWER = A100 + ("a100-pcie-4gpu-nop2p", "pcie-8gpu", "hgx-h100", "h100-pcie-8gpu", "hgx-h200", "hgx-b200")
KNOWN = NEWER + ("dgx1-v100", "dgx2", "gh200")
TWO_BYTES = ("f16", "bf16")
HOPPER, BLACKWELL = ("hgx-h100",), ("hgx-b200", "hgx-b300", "gb200-nvl72", "gb300-nvl72")
A100_TFLOPS_PER_WATT, B200_TFLOPS_PER_WATT = 0.78, 2.25


def is_convolutional(row):
    return row.model.startswith("resn") and row.node in KNOWN


def is_bert_in_two_bytes(row):
    return row.model.startswith("bert") and row.dtype in TWO_BYTES and row.node in NEWER


def waits_in_one_node(row):
    return row.strategy == "multi_worker_mirrored" and row.nodes == 1 and not row.has_spread and row.site != "Lambda"


def is_dense_step_on_blackwell(row):
    return row.is_quantised and row.node in BLACKWELL and row.file != "llm/megatron_bridge_moe.json"


# name: of the constants together. values: of each, what is tried. rows(figures): the row set, or None for single kernels.
# wanted: of points, those that count. by: whether each row, case or site counts once. stated: what the sources of a constant are.
Fit = collections.namedtuple("Fit", "name values rows wanted by stated protocol", defaults=("links",))


def steps(first, last, step):
    return [round(first + i * step, 6) for i in range(round((last - first) / step) + 1)]


def kernels_of(file, *gpus):
    return lambda point: point.row.file == file and point.row.site in gpus


def of_steps(wanted):
    return lambda figures: training_rows(wanted, figures)


FITS = [
    Fit("convolutions", {"kTrainingShare": steps(0.7, 1, 0.05), "kBandwidthShare": steps(0.65, 0.95, 0.05),
                         "kElementsInFlight": steps(1500, 4000, 500)},
        lambda figures: one_gpu_rows(is_convolutional, figures), lambda point: True, "case",
        "DLPerf, DeepLearningExamples, Lambda (`tests/scenarios/training_rows.csv`): steps of ResNet-50 and ResNeXt-101 on one V100, A100, "
        "H100, H200, GH200 or B200"),
    Fit("wide loads", {"kWideLoadBytes": [2, 3, 4, 5, 6, 8]},
        lambda figures: one_gpu_rows(is_bert_in_two_bytes, figures), lambda point: True, "case",
        "Lambda, DeepLearningExamples (the same file): steps of BERT in two bytes on one A100, H100, H200 or B200"),
    Fit("waiting", {"kInStepOverhead": steps(0, 0.06, 0.01), "kWorkSpread": steps(0, 0.04, 0.005)},
        of_steps(waits_in_one_node), lambda point: point.row.devices > 1, "row",
        "DLPerf, DeepLearningExamples, PyTorch DDP (`tests/validation/training`): one node, data parallel, rows of fixed shape; here with the "
        "device fitted to the row of one", "first-row"),
    Fit("products", {"kProductShare": steps(0.8, 1.1, 0.01)}, None, kernels_of("gemm.csv", "a100", "h100", "b200"), "site",
        "aiconfigurator (`tests/validation/kernels/gemm.csv`): products of over 0.1 ms in bf16"),
    Fit("products in fp8", {"kFp8Share": steps(0.6, 0.95, 0.01)}, None, kernels_of("gemm.csv", "h100 fp8", "b200 fp8"), "site",
        "aiconfigurator (`tests/validation/kernels/gemm.csv`): products of over 0.1 ms in fp8"),
    Fit("products in nvfp4", {"kFp4Share": steps(0.35, 0.7, 0.01)}, None, kernels_of("gemm.csv", "b200 nvfp4"), "site",
        "aiconfigurator (`tests/validation/kernels/gemm.csv`): products of over 0.1 ms in nvfp4"),
    Fit("attention", {"kAttentionShare": steps(0.55, 1, 0.05), "kExposedExponentials": steps(0.3, 1.2, 0.1),
                      "kMoreKeys": steps(0, 800, 100)}, None, kernels_of("attention.csv", "a100", "h100", "b200"), "site",
        "aiconfigurator (`tests/validation/kernels/attention.csv`): forward passes of over 0.1 ms"),
    Fit("power in two bytes", {"sustained": steps(0.56, 1, 0.02)},
        of_steps(lambda row: row.node in BLACKWELL and not row.is_quantised), lambda point: True, "site",
        "SimuMax (24 rows) and Megatron-Bridge (4, models with experts): steps in two bytes on B200, B300 and GB200"),
    Fit("power, quantised, Blackwell", {"sustained_quantised Blackwell": steps(0.7, 1, 0.05)},
        of_steps(is_dense_step_on_blackwell), lambda point: True, "site",
        "Megatron-Bridge: six dense steps in fp8, mxfp8 and nvfp4 on B200 and GB200; here with MLPerf's GPT-3"),
    Fit("power, quantised, Hopper", {"sustained_quantised Hopper": sorted(steps(0.65, 1, 0.05) + [0.93])},
        of_steps(lambda row: row.node in HOPPER and row.is_quantised), lambda point: True, "site",
        "MLPerf: GPT-3 in fp8 on H100; here Llama 3.1 instead, with MosaicML's and Megatron-Bridge's steps in fp8"),
]
# Without the only site of single kernels, their constants follow from steps of transformers on A100s, which power does not limit.
KERNEL_SITE = "aiconfigurator"
FROM_STEPS = Fit("products and attention", {"kProductShare": steps(0.75, 1.05, 0.05), "kAttentionShare": steps(0.4, 1, 0.1)},
                 of_steps(lambda row: row.site in ("MosaicML", "Megatron-LM") and row.node in A100),
                 lambda point: True, "site", "steps of transformers in two bytes on A100")


def header_constants():
    found = re.findall(r"inline constexpr double (k\w+) = ([^;]+);", HEADER.read_text())
    return {name: float(value) for name, value in found}


def catalog_text(node):
    return (CATALOG / f"{node}.yaml").read_text()


def catalog_figure(node, name):
    return float(re.search(rf"\n    {name}: {{value: ([\d.]+)", catalog_text(node)).group(1))


def constants_now():
    return dict(header_constants(), **{"sustained": catalog_figure("hgx-b200", "sustained"),
                                       "sustained_quantised Blackwell": catalog_figure("hgx-b200", "sustained_quantised"),
                                       "sustained_quantised Hopper": catalog_figure("hgx-h100", "sustained_quantised")})


def sustained_of(node, of_b200):
    """Between an A100, which power does not limit, and a B200 by peak a watt, as the catalog has it."""
    if node == "hgx-b200":
        return of_b200
    per_watt = float(re.search(r"sustained: {.* at ([\d.]+)\"", catalog_text(node)).group(1))
    share = (per_watt - A100_TFLOPS_PER_WATT) / (B200_TFLOPS_PER_WATT - A100_TFLOPS_PER_WATT)
    return round(1 - (1 - of_b200) * share, 4)


def figures_with(constants):
    """Which figures of the catalog a machine has with these constants."""
    def figures(node):
        result = {}
        if not (CATALOG / f"{node}.yaml").exists() or "\n    sustained: {" not in catalog_text(node):
            return result
        if "sustained" in constants:
            result["sustained"] = sustained_of(node, constants["sustained"])
        quantised = "sustained_quantised " + ("Blackwell" if node in BLACKWELL else "Hopper")
        if quantised in constants:
            result["sustained_quantised"] = constants[quantised]
        return result
    return figures


def of_header(constants):
    return {name: value for name, value in constants.items() if name.startswith("k")}


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def objective(points, by):
    """The mean |ln(predicted / measured)|."""
    def grouped(key):
        groups = collections.defaultdict(list)
        for point in points:
            groups[key(point)].append(point.error)
        return groups.values()
    if by == "row":
        return mean(abs(point.error) for point in points)
    if by == "case":
        return mean(abs(mean(errors)) for errors in grouped(lambda point: point.row.case))
    return mean(mean(map(abs, errors)) for errors in grouped(lambda point: point.row.site))


def best(tried, by, wanted):
    """The constants with the least objective over the wanted points, and of each the range of those nearly as good."""
    found = {values: objective([point for point in points if wanted(point)], by) for values, points in tried.items()}
    least = min(found.values())
    good = [values for values, error in found.items() if error <= MOST_WORSE * least]
    return min(found, key=found.get), [(min(column), max(column)) for column in zip(*good)]


def percentages(points):
    errors = sorted(100 * abs(math.expm1(point.error)) for point in points)
    median = errors[len(errors) // 2] if len(errors) % 2 else (errors[len(errors) // 2 - 1] + errors[len(errors) // 2]) / 2
    return f"{median:.1f} / {errors[(95 * len(errors) + 99) // 100 - 1]:.1f}"


class Refit:
    def __init__(self, simulation):
        self.simulation = simulation
        self.now = constants_now()
        self.left_out = collections.defaultdict(dict)  # site -> constants fitted without it

    def points(self, fit, constants):
        if fit.rows is None:
            points = self.simulation.kernels(of_header(constants))
        else:
            points = self.simulation.training(fit.rows(figures_with(constants)), of_header(constants), fit.protocol)
        return [point for point in points if fit.wanted(point)]

    def tried(self, fit):
        result = {}
        for values in itertools.product(*fit.values.values()):
            result[values] = self.points(fit, dict(zip(fit.values, values)))
        print(f"{fit.name}: {len(result)} combinations, {self.simulation.runs} runs in all", file=sys.stderr)
        return result

    def rows_of(self, fit):
        """The lines of the table: fitted to all rows, and without each site."""
        tried = self.tried(fit)
        at_present = self.points(fit, {})
        again, ranges = best(tried, fit.by, lambda point: True)
        yield fit, "-", again, ranges, at_present, tried[again]
        sites = sorted({point.row.site for point in at_present})
        for site in sites if len(sites) > 1 else []:
            values, ranges = best(tried, fit.by, lambda point: point.row.site != site)
            self.left_out[site].update(zip(fit.values, values))
            mine = [[point for point in points if point.row.site == site] for points in (at_present, tried[values])]
            yield fit, site, values, ranges, mine[0], mine[1]

    def kernels_from_steps(self):
        """What single kernels are predicted to take by constants fitted to steps."""
        tried = self.tried(FROM_STEPS)
        values, ranges = best(tried, FROM_STEPS.by, lambda point: True)
        constants = dict(zip(FROM_STEPS.values, values))
        for name in ("products", "attention"):
            fit = next(fit for fit in FITS if fit.name == name)
            at_present, from_steps = self.points(fit, {}), self.points(fit, constants)
            yield FROM_STEPS, f"{KERNEL_SITE}, {name}", values, ranges, at_present, from_steps

    def predictions(self):
        """All training rows as now, and each site's with the constants fitted without it."""
        now, without = [], []
        for site in sorted({row.site for row in training_rows(lambda row: row.strategy != "parameter_server").rows}):
            def is_mine(row):
                return row.site == site and row.strategy != "parameter_server"
            constants = self.left_out.get(site, {})
            now += self.simulation.training(training_rows(is_mine), {})
            without += self.simulation.training(training_rows(is_mine, figures_with(constants)), of_header(constants))
        return now, without


def number(value):
    return f"{value:g}"


def table(titles, lines):
    return "\n".join(["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)] +
                     ["| " + " | ".join(line) + " |" for line in lines])


def fits_table(lines):
    rows = []
    for fit, site, values, ranges, at_present, result in lines:
        names = ", ".join(f"`{name}`" for name in fit.values)
        rows.append([names if site == "-" or fit is FROM_STEPS else "", "all rows" if site == "-" else f"without {site}",
                     ", ".join(map(number, values)),
                     ", ".join(number(low) if low == high else f"{number(low)} to {number(high)}" for low, high in ranges),
                     str(len(result)), percentages(at_present), percentages(result)])
    return table(["constants", "fitted to", "come out", "equally good", "rows", "error now", "error fitted"], rows)


def constants_table(now):
    return table(["constants", "now", "rests on"],
                 [[", ".join(f"`{name}`" for name in fit.values), ", ".join(number(now[name]) for name in fit.values), fit.stated]
                  for fit in FITS])


def grouped_lines(key, now, without, more=lambda name: []):
    names = list(dict.fromkeys(map(key, now)))
    pick = [{name: [point for point in points if key(point) == name] for name in names} for points in (now, without)]
    return [[name, *more(name), str(len(pick[0][name])), percentages(pick[0][name]), percentages(pick[1][name])] for name in names]


def tables(refit):
    lines = [line for fit in FITS for line in refit.rows_of(fit)] + list(refit.kernels_from_steps())
    now, without = refit.predictions()
    def changed(site):
        return [", ".join(f"`{name}` {number(value)}" for name, value in refit.left_out.get(site, {}).items()) or "none rests on it"]
    kinds = grouped_lines(lambda point: point.group, now, without)
    sites = grouped_lines(lambda point: point.row.site, now, without, changed)
    return {"constants": constants_table(refit.now), "fits": fits_table(lines),
            "sites": table(["site", "constants without it", "rows", "error now", "error left out"], sites),
            "kinds": table(["prediction of", "rows", "error now", "error left out"], kinds)}


def write(page, found):
    text = page.read_text()
    for name, rows in found.items():
        pattern = rf"(<!-- refit: {name} -->\n)(\|.*\n)*"
        if not re.search(pattern, text):
            raise SystemExit(f"{page} has no place for the table of {name}")
        text = re.sub(pattern, lambda match: match.group(1) + rows + "\n", text)
    page.write_text(text)


def check(page):
    """Every constant of the page's tables `name | now` is as the header and the catalog have it, and none of the fits is missing."""
    now, stated = constants_now(), []
    for names, values in re.findall(r"^\| ((?:`[^`|]+`(?:, )?)+) \| ([^|]+) \|", page.read_text(), re.M):
        names, values = re.findall(r"`([^`]+)`", names), values.split(", ")
        if all(name in now for name in names) and re.fullmatch(r"[-+\d.e]+", values[0]):
            stated += zip(names, map(float, values), strict=True)
    wrong = [f"{name} is {now[name]:g}, and {page} says {value:g}" for name, value in stated if value != now[name]]
    wrong += [f"{page} does not name {name}" for name in now if name not in dict(stated)]
    if constants_table(now) not in page.read_text():
        wrong.append(f"{page} has not the table of fitted constants that this script prints")
    for path in sorted(CATALOG.glob("*.yaml")):
        if "\n    sustained: {" in path.read_text():
            value, expected = catalog_figure(path.stem, "sustained"), sustained_of(path.stem, now["sustained"])
            if abs(value - expected) > 0.0051:
                wrong.append(f"{path} has sustained {value:g}; by its peak a watt it is {expected:.2f}")
    if wrong:
        raise SystemExit("\n".join(wrong))


def test(tandem):
    """Rows of two sites that were simulated with a figure of 0.7 and of 0.9: each is found where the other is left out."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        simulation = Simulation(tandem, None, folder / "known")
        (folder / "rows").mkdir()

        def write_site(name, throughput):
            document = {"source": {"title": name}, "strategy": "one_device", "unit": "sequences/s", "tables": [
                {"topology": {"node": "hgx-b200"},
                 "workload": {"kind": "layers", "model": "gpt", "batch": 8, "dtype": "bf16", "optimizer": "adam"},
                 "rows": [{"devices": 1, "throughput": throughput}]}]}
            (folder / "rows" / f"{name}.json").write_text(json.dumps(document))

        def rows(figures):
            return training_rows(lambda row: True, figures, folder / "rows")

        write_site("DLPerf", 1)
        for site, sustained in (("DLPerf", 0.7), ("Lambda", 0.9)):
            only = simulation.training(training_rows(lambda row: row.site == "DLPerf", figures_with({"sustained": sustained}),
                                                     folder / "rows"), {})
            write_site(site, math.exp(only[0].error) * (only[0].row.throughput))
        fit = Fit("test", {"sustained": [0.6, 0.7, 0.8, 0.9]}, rows, lambda point: True, "site", "")
        refit = Refit(simulation)
        lines = list(refit.rows_of(fit))
        assert refit.left_out == {"DLPerf": {"sustained": 0.9}, "Lambda": {"sustained": 0.7}}, refit.left_out
        assert [line[1] for line in lines] == ["-", "DLPerf", "Lambda"]
        errors = [abs(line[-1][0].error) for line in lines[1:]]
        assert min(errors) > 0.05 and abs(errors[0] - errors[1]) < 1e-6, errors  # from 0.7 to 0.9 and back

        page = folder / "page.md"
        names = constants_now()
        right = "".join(f"| `{name}` | {value:g} | x |\n" for name, value in names.items()) + constants_table(names) + "\n\n"
        page.write_text(right + "<!-- refit: kinds -->\n| old |\n")
        check(page)
        write(page, {"kinds": "| new |\n| row |"})
        assert page.read_text() == right + "<!-- refit: kinds -->\n| new |\n| row |\n"
        for wrong, message in ((right.replace("| 0.85 |", "| 0.86 |", 1), "kTrainingShare is 0.85"),
                               (right.replace("| `kClock_hz` |", "| clock |"), "does not name kClock_hz"),
                               (right.replace("Lambda", "nobody"), "has not the table")):
            page.write_text(wrong)
            try:
                check(page)
            except SystemExit as error:
                assert message in str(error), error
            else:
                raise AssertionError(f"a page is right that is wrong: {message}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--write", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--check", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--self-test", type=pathlib.Path, metavar="TANDEM")
    arguments = parser.parse_args()
    if arguments.self_test:
        return test(arguments.self_test.resolve())
    if arguments.check:
        return check(arguments.check)
    subprocess.run(["cmake", "--build", arguments.build, "--target", "tandem_varied", "varied_kernels"], check=True)
    folder = pathlib.Path(arguments.build).resolve() / "tests/benchmarks/refit"
    found = tables(Refit(Simulation(folder / "tandem_varied", folder / "varied_kernels", folder / "known")))
    print("\n\n".join(found.values()))
    if arguments.write:
        write(arguments.write, found)


if __name__ == "__main__":
    main()
