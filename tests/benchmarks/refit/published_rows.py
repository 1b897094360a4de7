"""The rows that constants are fitted to, and what the simulation says of them with other constants.

A row set is a folder of training files as `tandem validate` reads them, held as {file: text}. Rows keep their order, so that those of
two evaluations belong together.
"""
import collections
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[3]
TRAINING = ROOT / "tests/validation/training"
ONE_GPU = ROOT / "tests/scenarios/training_rows.csv"

# Sites by what the title of a source begins with. NVIDIA's three publications are of different software and machines.
SITES = {"NVIDIA DeepLearningExamples": "DeepLearningExamples", "DLPerf": "DLPerf", "Lambda": "Lambda",
         "MLPerf": "MLPerf", "Megatron-LM": "Megatron-LM", "Megatron-Bridge": "Megatron-Bridge",
         "MPT Training": "MosaicML", "SimuMax": "SimuMax", "PyTorch Distributed": "PyTorch DDP", "MXNet": "MXNet",
         "torchtitan": "torchtitan", "TensorFlow performance": "TensorFlow", "CM-DARE": "CM-DARE"}
CSV_SITES = {"dle": "DeepLearningExamples", "dlperf": "DLPerf", "lambda": "Lambda"}

# `case` is what rows of one table, model, machine and type share; fits count it once where they say so.
Row = collections.namedtuple("Row", "site file node dtype model case devices nodes throughput strategy has_spread is_quantised")
Point = collections.namedtuple("Point", "row group error")


def site_of(title):
    return next((site for start, site in SITES.items() if title.startswith(start)), title)


class RowSet:
    def __init__(self):
        self.files, self.rows = {}, []

    def add_file(self, name, document, tables):
        """`tables` are pairs of a table and the descriptions of its rows."""
        tables = [(table, rows) for table, rows in tables if rows]
        if tables:
            self.files[name] = json.dumps(dict(document, tables=[table for table, _ in tables]))
            self.rows += [row for _, rows in tables for row in rows]


def described(name, document, table, row):
    workload = row.get("workload", table["workload"])
    topology = table.get("topology") or document["topology"]
    model = pathlib.Path(workload["model"]).stem
    dtype = workload.get("dtype", "f32")
    strategy = row.get("strategy", {}).get("name") or table.get("strategy") or document["strategy"]
    return Row(site_of(document["source"].get("title", "")), name, topology["node"], dtype, model,
               (name, topology["node"], model, dtype), row["devices"], row.get("nodes", 1), row["throughput"], strategy,
               "spread" in workload, "precision" in workload)


def is_apart(topology):
    """Whether rows are reported apart from others, as scenarios/validation/rules.cc has it. None is fitted to."""
    return topology.get("devices_per_process", 1) > 1 or topology.get("power_limited", False)


def with_figures(topology, figures):
    """The topology of a table with other figures of its GPU."""
    overrides = json.loads(json.dumps(topology.get("overrides", {})))
    overrides.setdefault("gpu", {}).update(figures)
    return dict(topology, overrides=overrides)


def training_rows(wanted, figures=lambda node: {}, folder=TRAINING):
    """The rows of a folder that are wanted, on machines whose GPUs have the figures."""
    rows = RowSet()
    for path in sorted(folder.rglob("*.json")):
        name, document = str(path.relative_to(folder)), json.loads(path.read_text())
        tables = []
        for table in document.get("tables", []):
            topology = table.get("topology") or document.get("topology")
            if not topology or "lacks" in topology or "workload" not in table or is_apart(topology):
                continue
            kept = [(row, described(name, document, table, row)) for row in table["rows"]]
            kept = [(row, described_row) for row, described_row in kept if wanted(described_row)]
            changed = dict(table, rows=[row for row, _ in kept])
            if figures(topology["node"]):
                changed["topology"] = with_figures(topology, figures(topology["node"]))
            tables.append((changed, [described_row for _, described_row in kept]))
        rows.add_file(name, document, tables)
    return rows


def one_gpu_rows(wanted, figures=lambda node: {}):
    """Those of tests/scenarios/training_rows.csv, as files of one table a row."""
    tables = collections.defaultdict(list)
    for line in ONE_GPU.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        source, words, batch, node, published = (field.strip() for field in line.split(";"))
        workload = json.loads(re.sub(r"[A-Za-z_]\w*", r'"\g<0>"', f"{{kind: layers, {words}, batch: {batch}}}"))
        site, name = CSV_SITES[source.split("_")[0]], source + ".json"
        row = Row(site, name, node, workload["dtype"], workload["model"], (source, words, node), 1, 1, float(published),
                  "one_device", False, False)
        topology = with_figures({"node": node}, figures(node)) if figures(node) else {"node": node}
        table = {"topology": topology, "workload": workload, "rows": [{"devices": 1, "throughput": float(published)}]}
        if wanted(row):
            tables[name].append((table, [row]))
    rows = RowSet()
    for name, found in tables.items():
        rows.add_file(name, {"strategy": "one_device", "unit": "units/s"}, found)
    return rows


def group_of(point):
    """The kind of a prediction, as reports/errors/prediction_groups.cc has them."""
    strategy = point["strategy"]
    if strategy == "parameter_server":
        return "parameter servers"
    if strategy == "central_storage":
        return "central storage"
    if point["devices"] == 1:
        return "one device"
    if strategy == "fully_sharded":
        return "fully sharded"
    if point["nodes"] == 1:
        return "one node"
    return "several nodes, mesh" if strategy in MESHES else "several nodes, data parallel"


MESHES = ("mesh", "tensor_parallel", "pipeline_parallel")


class Simulation:
    """Runs the programs that are built with constants from the environment, and keeps what tandem said."""

    def __init__(self, tandem, kernels, known):
        self.tandem, self.kernel_times, self.known, self.runs = tandem, kernels, known, 0
        known.mkdir(exist_ok=True)

    def output_of(self, command, constants, folder):
        self.runs += 1
        varied = {f"TANDEM_{name}": repr(value) for name, value in constants.items()}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=dict(os.environ, **varied))
        if done.returncode != 0:
            raise SystemExit(f"{varied} {' '.join(map(str, command))}\n{done.stderr}")
        return done.stdout

    def validated(self, constants, files, protocol):
        """What `tandem validate` prints, from a former run if neither it nor its input has changed."""
        key = json.dumps([self.tandem.stat().st_mtime_ns, sorted(constants.items()), files, protocol])
        known = self.known / hashlib.sha1(key.encode()).hexdigest()
        if not known.exists():
            with tempfile.TemporaryDirectory() as folder:
                for name, text in files.items():
                    file = pathlib.Path(folder) / name
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text)
                command = [self.tandem, "validate", ".", "--json", "--protocol", protocol]
                output = self.output_of(command, constants, folder)
            unfinished = known.with_suffix(".new")
            unfinished.write_text(output)
            unfinished.rename(known)
        return known.read_text()

    def training(self, rows, constants, protocol="links"):
        """Points of the rows; of `first-row`, those that are predicted."""
        models = {str(path.relative_to(TRAINING)): path.read_text() for path in TRAINING.rglob("*.yaml")}
        output = self.validated(constants, dict(models, **rows.files), protocol)
        return points_of(json.loads(output)["points"], rows)

    def kernels(self, constants):
        """Points of single kernels of over 0.1 ms; the site is the GPU with its type."""
        points = []
        for line in self.output_of([self.kernel_times], constants, ".").splitlines():
            file, gpu, measured, predicted = line.split(",")
            row = Row(gpu, file, gpu, "", "", None, 1, 1, 0, "", False, False)
            if float(measured) >= 1e-4:
                points.append(Point(row, "kernel", math.log(float(predicted) / float(measured))))
        return points


def points_of(predicted, rows):
    """Joins predictions with their rows. Some are left out (memory, a fitted first row), none changes its place."""
    result, next_rows = [], collections.defaultdict(list)
    for row in rows.rows:
        next_rows[row.file].append(row)
    for point in predicted:
        candidates = next_rows[point["file"]]
        while (candidates[0].devices, candidates[0].throughput) != (point["devices"], point["measured"]):
            candidates.pop(0)
        error = math.log(point["predicted"] / point["measured"])
        result.append(Point(candidates.pop(0), group_of(point), error))
    return result
