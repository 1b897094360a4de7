#!/usr/bin/env python3
"""Prints which place the layouts of published runs take in the order of `tandem plan`.

    tests/validation/published_layouts.py build/release/cli/tandem --keep DIR --write docs/fidelity/plans.md

Each question (model, machine, devices, batch, precision, sequence length) of the rows of tests/validation/training with a mesh is planned
once; where a source has several layouts for it, theirs is the fastest one. Takes an hour on two processors; --keep DIR keeps what was
found of each question, and a later call goes on with it. --only TEXT plans the questions with TEXT in their names.
`published_layouts.py TANDEM --self-test` plans a few quick questions, and compares them with docs/fidelity/plans.md.
"""
import argparse
import collections
import hashlib
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).parents[2]
TRAINING = ROOT / "tests/validation/training"
PAGE = ROOT / "docs/fidelity/plans.md"
FOLDERS = ("llm", "megatron", "mlperf")
MACHINE_KEYS = {"node", "fabric", "overrides", "nvlink_domain", "p2p", "nics"}
SIZES = ("data", "context", "tensor", "pipeline", "virtual_stages", "expert", "micro_batches")
LETTERS = {"data": "DP", "context": "CP", "tensor": "TP", "pipeline": "PP", "virtual_stages": "VP", "expert": "EP"}
# What layouts leave free of the memory for contexts, buffers of libraries and fragments: the example of docs/workloads.md.
RESERVED = {"bytes": "1.5GB", "share": 0.05}
BEST, NEAR = 5, 1.05  # right is a layout among so many, or within this of the best

# What a program could not do when its runs were published: conditions of the space, and fields with one value. `recomputes`: what is
# computed again is a choice; else every row of the source has the same, so that it belongs to the question. `tries`: the source went through
# layouts to test a simulator, and nobody chose one of them.
Program = collections.namedtuple("Program", "name where fields recomputes tries", defaults=([], {}, False, False))
# Stages have equally many blocks, where the embedding and the loss may count as one each (validate_args in
# megatron/training/arguments.py: --account-for-embedding-in-pipeline-split).
EQUAL_STAGES = "{blocks} % (pipeline * virtual_stages) == 0"
EQUAL_STAGES_OR_ENDS = "({blocks} % (pipeline * virtual_stages) == 0 or ({blocks} + 2) % (pipeline * virtual_stages) == 0)"
# --overlap-moe-expert-parallel-comm needs devices that divide experts, and two micro-batches.
TURNS = "strategy.overlap_experts == (expert > 1 and micro_batches > 1)"
# Keys and values go round a ring (cp_comm_type p2p, the default of megatron/core/transformer/transformer_config.py).
RING = {"strategy.context_exchange": ["ring"]}
PROGRAMS = [
    # README of September 2020: tensors and replicas, one pass a step; all else came later.
    ("Megatron-LM README scaling tables",
     Program("Megatron-LM, 2020", ["context == 1", "pipeline == 1", "micro_batches == 1"],
             {"strategy.distributed_optimizer": ["false"], "workload.sequence_parallel": ["false"]})),
    # Stages and interleaving (SC21); sequence parallelism is of 2022, context parallelism of 2023, as is the distributed optimizer of 2022.
    ("Megatron-LM README scaling table (image)",
     Program("Megatron-LM, 2021", ["context == 1", EQUAL_STAGES],
             {"strategy.distributed_optimizer": ["false"], "workload.sequence_parallel": ["false"]})),
    ("MLPerf", Program("NeMo", [EQUAL_STAGES_OR_ENDS], RING)),
    ("Megatron-Bridge", Program("Megatron-Bridge", [EQUAL_STAGES_OR_ENDS], RING, True)),
    ("SimuMax", Program("Megatron-LM", [EQUAL_STAGES], RING, tries=True)),
    ("torchtitan", Program("torchtitan")),
]
NEMO_OF_2023 = Program("NeMo, 2023", ["context == 1", EQUAL_STAGES])  # MLPerf 3.0, before context parallelism

MARK = "<!-- layouts -->"
# Questions that take a second or two each.
QUICK = ("torchtitan: llama, 8 x hgx-h100, batch 2, fp8, 131,072 tokens",
         "Megatron-LM, 2020: gpt 36 x 3,072, 512 x dgx-a100-40gb, batch 2,048, f16, 1,024 tokens",
         "Megatron-LM, 2021: gpt 60 x 10,240, 1024 x dgx-a100, batch 1,792, f16, 2,048 tokens")

Question = collections.namedtuple("Question", "name program scenario layouts")
Layout = collections.namedtuple("Layout", "strategy workload throughput")


def program_of(title, row):
    if title.startswith("MLPerf") and row.get("system", "").endswith("v3.0"):
        return NEMO_OF_2023
    return next(program for start, program in PROGRAMS if title.startswith(start))


def model_file(path, workload):
    own = path.parent / workload["model"]
    return dict(workload, model=str(own.resolve())) if own.is_file() else workload


def scenario_of(name, path, topology, row, workload, strategy):
    """The scenario that `tandem validate` makes of a row (scenarios/measurements/training_file.cc)."""
    nodes = row.get("nodes", 1)
    machine = {key: value for key, value in topology.items() if key in MACHINE_KEYS}
    return {"schema_version": 1, "name": name, "workload": model_file(path, workload), "strategy": strategy,
            "engine": {"name": "sim"}, "topology": {"cluster": dict(machine, workers=nodes)},
            "devices": {"type": "gpu", "workers": nodes, "per_worker": row["devices"] // nodes}, "steps": 2, "warmup_steps": 1}


def size_of(workload):
    sizes = workload.get("sizes", {})
    word = pathlib.Path(workload["model"]).stem
    return word + ("" if "layers" not in sizes else f" {sizes['layers']} x {sizes['hidden']:,}")


def name_of(topology, row, workload):
    machine = topology["node"]
    precision = workload.get("precision", {}).get("compute", workload["dtype"])
    tokens = workload.get("sizes", {}).get("tokens")
    return (f"{size_of(workload)}, {row['devices']} x {machine}, batch {workload['batch']:,}, {precision}"
            + (f", {tokens:,} tokens" if tokens else ""))


def questions():
    found = {}
    for folder in FOLDERS:
        for path in sorted((TRAINING / folder).glob("*.json")):
            document = json.loads(path.read_text())
            title = document["source"]["title"]
            for table in document["tables"]:
                for row in table.get("rows", []):
                    strategy, workload = row.get("strategy", {}), row.get("workload", table["workload"])
                    if strategy.get("name") != "mesh" or row["devices"] == 1:
                        continue
                    topology = table.get("topology") or document["topology"]
                    program = program_of(title, row)
                    name = name_of(topology, row, workload)
                    layout = Layout(strategy, workload, row["throughput"])
                    scenario = scenario_of(name, path, topology, row, workload, strategy)
                    if (program.name, name) in found:
                        one = found[program.name, name]
                        one.layouts.append(layout)
                        if layout.throughput > one.layouts[0].throughput:
                            one.layouts.insert(0, one.layouts.pop())
                            found[program.name, name] = one._replace(scenario=scenario)
                    else:
                        found[program.name, name] = Question(name, program, scenario, [layout])
    return list(found.values())


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Tandem:
    def __init__(self, program, folder, within_s, jobs):
        self.program, self.folder, self.within_s, self.jobs = str(program), pathlib.Path(folder), within_s, jobs

    def call(self, *words):
        done = subprocess.run([self.program, *map(str, words), "--quiet"], capture_output=True, text=True)
        if done.returncode not in (0, 5):
            raise SystemExit(f"{self.program} {' '.join(map(str, words))}\n{done.stderr}")
        return done.stdout

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def usual_space(self, scenario):
        text = self.call("plan", scenario, "--usual-space", "--strategies", "mesh", "--dry-run")
        values = dict(re.findall(r"^    ([\w.]+): \[(.*)\]$", text, re.M))
        return {key: value.split(", ") for key, value in values.items()}, re.findall(r'^    - "(.*)"$', text, re.M)

    def space(self, question, scenario):
        values, where = self.usual_space(scenario)
        values.update(question.program.fields)
        own = json.dumps(question.layouts[0].workload.get("activation_checkpointing", False))
        recomputed = values["workload.activation_checkpointing"]
        values["workload.activation_checkpointing"] = recomputed + [own] * (own not in recomputed) if question.program.recomputes else [own]
        if question.layouts[0].strategy.get("overlap_experts"):  # wherever passes can take turns
            values["strategy.overlap_experts"] = ["true", "false"]
            where = where + [TURNS]
        if values.get("workload.sequence_parallel") == ["false"]:
            where = [one for one in where if "sequence_parallel" not in one]
        blocks = question.layouts[0].workload.get("sizes", {}).get("layers") or blocks_of(question)
        where = where + [one.format(blocks=blocks) for one in question.program.where]
        text = "sweep:\n  values:\n" + "".join(f"    {key}: [{', '.join(value)}]\n" for key, value in values.items())
        return text + "  where:\n" + "".join(f'    - "{one}"\n' for one in where)

    def point(self, scenario, values, name):
        """The scenario with these values, simulated quickly as points of plans are."""
        changed = json.loads(json.dumps(scenario))
        changed["sweep"] = {"values": {key: [value] for key, value in values.items()}}
        path = self.file(f"{name}.point.yaml", json.dumps(changed))
        return json.loads(self.call("sweep", path, "-j", 1, "--json", "--results", self.folder / f"{name}.point.jsonl"))["points"][0]

    def judged(self, question, reserved):
        """What was found; None where nothing was in the time."""
        name = hash_of(f"{question.program.name} {question.name}") + "-full" * (not reserved)
        kept = self.folder / f"{name}.judged.json"
        if kept.is_file():
            return json.loads(kept.read_text())
        if self.within_s == 0:
            return None
        asked = dict(question.scenario, devices=dict(question.scenario["devices"], **({"reserved": reserved} if reserved else {})))
        scenario = self.file(f"{name}.yaml", json.dumps(asked))
        space = self.file(f"{name}.space.yaml", self.space(question, scenario))
        theirs = self.point(question.scenario, {"strategy.data": question.scenario["strategy"]["data"]}, name)
        words = ["plan", scenario, "--space", space, "--json", "-j", self.jobs, "--best", BEST,
                 "--results", self.folder / f"{name}-{hash_of(json.dumps(asked))}.jsonl"]
        if self.within_s is not None:
            words += ["--within", self.within_s]
        found = verdict(question, theirs, json.loads(self.call(*words)))
        if found:
            kept.write_text(json.dumps(found))
        return found


def blocks_of(question):
    """The blocks of models that state no number of layers."""
    return {"llama": 32, "qwen3_30b_a3b": 48, "gpt_oss_120b": 18}[pathlib.Path(question.layouts[0].workload["model"]).stem]


def layout_text(values, batch, recomputed):
    one = {key: int(values.get(key, 1)) for key in SIZES}
    text = ", ".join(f"{LETTERS[key]} {one[key]}" for key in LETTERS if one[key] > 1 or key == "data")
    passes = batch // (one["data"] * one["micro_batches"])
    return text + f", MBS {passes}" + {"false": "", "true": ", recomputed"}.get(recomputed, f", {recomputed} recomputed")


def sizes_of(point):
    return {key.removeprefix("strategy."): value for key, value in point["values"].items() if key.startswith("strategy.")}


def same_sizes(point, strategy):
    sizes = sizes_of(point)
    return all(int(sizes.get(key, 1)) == int(strategy.get(key, 1)) for key in SIZES)


def recomputation_of(workload):
    own = workload.get("activation_checkpointing", False)
    return own if isinstance(own, str) else json.dumps(own) if isinstance(own, bool) else ", ".join(own["modules"])


def verdict(question, theirs, plan):
    published = question.layouts[0]
    batch = published.workload["batch"]
    done = [plan["points"][place] for place in plan["best"]] + [p for i, p in enumerate(plan["points"])
                                                               if p["state"] == "done" and i not in plan["best"]]
    done.sort(key=lambda point: point["step_time_ns"])
    counts = plan["counts"]
    found = {"name": question.name, "program": question.program.name, "fitting": counts["points"] - counts["do_not_fit"] - counts["cannot_run"],
             "simulated": counts["simulated"], "stopped": plan.get("stopped", ""),
             "theirs": layout_text(published.strategy, batch, recomputation_of(published.workload)),
             "measured_s": batch / published.throughput}
    if done:
        found["ours"] = layout_text(sizes_of(done[0]), batch, done[0]["values"].get("workload.activation_checkpointing"))
        found["ours_s"] = done[0]["step_time_ns"] / 1e9
        found["least_s"] = plan["least"] * batch if plan.get("least") else None
        found["ours_bytes"] = done[0]["memory_bytes"]["total"]
        found["best"] = [[layout_text(sizes_of(p), batch, p["values"].get("workload.activation_checkpointing")), p["step_time_ns"] / 1e9]
                         for p in done[:BEST]]
    if not done and plan.get("stopped"):
        return None
    if theirs["state"] != "done":
        return dict(found, problem=theirs["problem"])
    found["theirs_s"] = theirs["step_time_ns"] / 1e9
    found["theirs_bytes"] = theirs["memory_bytes"]["total"]
    ahead = [p for p in done if p["step_time_ns"] < theirs["step_time_ns"] and not
             (same_sizes(p, published.strategy) and p["step_time_ns"] > 0.98 * theirs["step_time_ns"])]
    found["ahead"] = len(ahead)
    found["ratio"] = theirs["step_time_ns"] / min([theirs["step_time_ns"]] + [point["step_time_ns"] for point in done])
    return found


def is_right(one):
    """None: the search was ended before that was certain."""
    if "theirs_s" not in one:
        return False
    if one["ratio"] > NEAR and (one["ahead"] >= BEST or one["fitting"] <= BEST):
        return False
    # Five of few are no choice.
    if not one["stopped"]:
        return one["ratio"] <= NEAR or one["fitting"] > BEST
    return True if one["least_s"] and one["theirs_s"] <= NEAR * one["least_s"] else None


def seconds_text(seconds):
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def row_of(one):
    """A row of the table; a search that was ended may have missed faster layouts."""
    cells = [f"{one['program']}: {one['name']}", one["theirs"], seconds_text(one["measured_s"])]
    if "theirs_s" not in one:
        return cells + [one["problem"], one.get("ours", "-"), seconds_text(one["ours_s"]) if "ours_s" in one else "-", "-", "-", "no"]
    more = "+" if one["stopped"] else ""
    return cells + [seconds_text(one["theirs_s"]), one.get("ours", "-"), seconds_text(one["ours_s"]) if "ours_s" in one else "-",
                    f"{one['ahead']}{more}", f"{one['ratio']:.3f}{more}", {True: "yes", False: "no", None: "?"}[is_right(one)]]


HEADS = ["question", "theirs", "measured", "predicted", "our best", "predicted", "ahead of theirs", "theirs / best", "right"]


def table_of(rows, heads):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads)] + rows)


def summary_of(all_found):
    found = [one for one in all_found if is_right(one) is not None]
    if not found:
        return "No search went far enough."
    ratios = [one["ratio"] for one in found if "ratio" in one]
    first = sum(one.get("ahead", BEST) < BEST < one["fitting"] for one in found)
    refused = sum("theirs_s" not in one for one in found)
    programs = collections.defaultdict(list)
    for one in found:
        programs[one["program"]].append(is_right(one))
    rights = sum(map(is_right, found))
    alone = [one for one in found if one["fitting"] == 1]
    undecided = len(all_found) - len(found)
    undecided = f"Of {undecided} more the search was ended before that was certain (?). " if undecided else ""
    by_program = ", ".join(f"{program} {sum(those)} of {len(those)}" for program, those in programs.items())
    return (f"{rights} of {len(found)} published layouts ({100 * rights / len(found):.0f} %) are right: {first} among our {BEST} best, "
            f"{sum(ratio <= NEAR for ratio in ratios)} within {100 * (NEAR - 1):.0f} % of the best. The median takes "
            f"{100 * (statistics.median(ratios) - 1):.1f} % more than our best, the worst {100 * (max(ratios) - 1):.0f} %; {refused} are refused for "
            f"memory. Beside {len(alone)} no other layout fits; of the others {rights - sum(map(is_right, alone))} are right. {undecided}By program: {by_program}.")


def with_text(page, mark, text):
    """The page with a text between the mark and the next empty line that a heading or the end of the page follows."""
    begin = page.index(mark) + len(mark)
    end = page.find("\n\n#", begin)
    return page[:begin] + "\n" + text + (page[end:] if end >= 0 else "\n")


def check_page(rows, least, page):
    if len(rows) < least:
        raise SystemExit(f"{len(rows)} rows were found, and not {least}: do the names of quick ones still exist?")
    for cells in rows:
        row = "| " + " | ".join(cells) + " |"
        if row not in page:
            raise SystemExit(f"docs/fidelity/plans.md does not have what is found today:\n{row}\nIf that is meant, write it anew (--write).")


def judged_ones(tandem, choices, wanted):
    for question in questions():
        if not question.program.tries and wanted(f"{question.program.name}: {question.name}"):
            if one := tandem.judged(question, None if choices.full else RESERVED):
                yield one


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("--keep", help="a folder for what was found")
    parser.add_argument("--only", default="", help="questions with this text in their names")
    parser.add_argument("--within", type=float, help="seconds for each question; 0: those that were not planned before are left out; default: no limit")
    parser.add_argument("--full", action="store_true", help="layouts may need as much memory as tandem allows them")
    parser.add_argument("--write", help="the page that gets the table")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("-j", type=int, default=1, help="processes of a search")
    choices = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(choices.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tandem = Tandem(choices.tandem, folder, choices.within, choices.j)
        if choices.self_test:
            rows = [row_of(one) for one in judged_ones(tandem, choices, lambda name: name in QUICK)]
            return check_page(rows, len(QUICK), PAGE.read_text())
        found = []
        for one in judged_ones(tandem, choices, lambda name: choices.only in name):
            found.append(one)
            print(" | ".join(row_of(one)), flush=True)
        print("\n" + summary_of(found))
        if choices.write:
            page = pathlib.Path(choices.write)
            page.write_text(with_text(page.read_text(), MARK, summary_of(found) + "\n\n" + table_of([row_of(one) for one in found], HEADS)))


if __name__ == "__main__":
    main()
