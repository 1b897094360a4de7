#!/usr/bin/env python3
"""Adds up what a job loses under a recorded trace of machines that come and go, and compares it with `tandem run`.

    tests/validation/spot_trace.py build/release/cli/tandem TRACE.csv
    tests/validation/spot_trace.py build/release/cli/tandem --self-test

TRACE.csv has lines of milliseconds, event (add, remove) and machine. The sums here are exact: dates and times are fractions, and every step is
taken by itself. From `tandem` comes only what a step takes on so many machines.

The rules are those of docs/faults.md. A machine that comes takes the first empty place of the job, else it is free; `spare` puts free machines
into empty places. The next checkpoint comes `every` steps after the last one, or after the last restart or wait; where `elastic` has saved in
the middle of a step to take a machine in, that is in the middle of a step.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

POLICIES = ["restart_all", "wait", "spare", "elastic"]
STATES = ["training", "slower", "lost", "checkpointing", "detecting", "waiting", "restarting", "loading"]
RECOVERY = {"detection": 30, "restart": 90, "checkpoint": 5, "load": 20}  # seconds
EVERY = 400  # steps between two checkpoints
AGREE = 1e-9  # of the job's time: what rounding may make of a sum of fractions


def read_trace(path):
    for line in path.read_text().split():
        date, event, node = line.split(",")
        yield Fraction(int(date), 1000), event == "add", node


class Machines:
    def __init__(self, places):
        self.places = [None] * places
        self.free = set()

    def lost(self):
        return self.places.count(None)

    def take(self, comes, node):
        """Returns whether a place of the job has got a machine, or lost its machine."""
        if not comes:
            self.free.discard(node)
            if node in self.places:
                self.places[self.places.index(node)] = None
                return True
            return False
        if None in self.places:
            self.places[self.places.index(None)] = node
            return True
        self.free.add(node)
        return False

    def use_free(self):
        while self.free and None in self.places:
            node = min(self.free)
            self.free.remove(node)
            self.places[self.places.index(None)] = node


class Replay:
    """A job of `steps` steps on `workers` machines under a policy. `step_s(machines)`: what a step takes."""

    def __init__(self, policy, trace, steps, workers, step_s):
        self.policy, self.steps, self.step_s = policy, steps, step_s
        self.events = collections.deque(trace)
        self.machines = Machines(workers)
        self.workers = workers
        self.now = Fraction(0)
        self.spent = collections.Counter({state: Fraction(0) for state in STATES})
        self.done = self.kept = Fraction(0)  # steps
        self.unkept_s = self.unkept_useful_s = Fraction(0)  # of the steps since the last checkpoint
        self.failures = self.checkpoints = 0
        self.steps_lost = Fraction(0)
        self.has_failed = self.has_grown = self.ends = False

    def take_event(self):
        _, comes, node = self.events.popleft()
        if self.machines.take(comes, node):
            if comes:
                self.has_grown = True
            else:
                self.has_failed = True
                self.failures += 1

    def take_due(self):
        while self.events and self.events[0][0] <= self.now:
            self.take_event()

    def phase(self, state, seconds):
        """Spends the time, unless a machine of the job goes before its end."""
        end = self.now + seconds
        while self.events and self.events[0][0] < end:
            self.spent[state] += self.events[0][0] - self.now
            self.now = self.events[0][0]
            self.take_event()
            if self.has_failed:
                return False
        self.spent[state] += end - self.now
        self.now = end
        return True

    def await_machines(self):
        """Returns whether the job can go on."""
        while True:
            if self.policy == "spare":
                self.machines.use_free()
            lost = self.machines.lost()
            if lost == 0 or (self.policy == "elastic" and lost < self.workers):
                return True
            if not any(comes for _, comes, _ in self.events):
                self.ends = True
                return False
            self.spent["waiting"] += self.events[0][0] - self.now
            self.now = self.events[0][0]
            self.take_event()
            if self.has_failed:
                return False

    def keep(self):
        self.spent["training"] += self.unkept_useful_s
        self.spent["slower"] += self.unkept_s - self.unkept_useful_s
        self.unkept_s = self.unkept_useful_s = Fraction(0)
        self.kept = self.done

    def roll_back(self):
        self.spent["lost"] += self.unkept_s
        self.unkept_s = self.unkept_useful_s = Fraction(0)
        self.steps_lost += self.done - self.kept
        self.done = self.kept

    def recover(self):
        rolls_back = self.policy != "wait"
        self.has_failed = True
        while self.has_failed and not self.ends:
            self.has_failed = False
            if rolls_back:
                self.roll_back()
            else:  # the step under way, on as many machines as the whole job has
                part = self.done - int(self.done)
                self.spent["lost"] += part * self.step_s(self.workers)
                self.unkept_s -= part * self.step_s(self.workers)
                self.unkept_useful_s -= part * self.step_s(self.workers)
                self.steps_lost += part
                self.done -= part
            self.go_through(RECOVERY["detection"], rolls_back)
        self.has_grown = False

    def go_through(self, detection_s, restarts):
        if self.phase("detecting", detection_s) and self.await_machines():
            if not restarts or self.phase("restarting", RECOVERY["restart"]):
                self.phase("loading", RECOVERY["load"])
        self.since = self.done

    def grow(self):
        self.has_grown = False
        if self.phase("checkpointing", RECOVERY["checkpoint"]):
            self.keep()
            self.go_through(0, True)

    def step(self):
        """Takes the rest of a step, to its end or the next event."""
        pace = self.step_s(self.workers - self.machines.lost())
        goal = min(Fraction(int(self.done) + 1), self.since + EVERY)
        end = self.now + (goal - self.done) * pace
        if self.events and self.events[0][0] < end:
            end = self.events[0][0]
        part = (end - self.now) / pace
        self.unkept_s += end - self.now
        self.unkept_useful_s += part * self.step_s(self.workers)
        self.done += part
        self.now = end
        if self.done == self.since + EVERY and self.done < self.steps:
            if self.phase("checkpointing", RECOVERY["checkpoint"]):
                self.keep()
                self.checkpoints += 1
                self.since = self.done

    def run(self):
        self.since = Fraction(0)
        self.take_due()
        self.has_failed = self.has_grown = False
        self.failures = 0
        while self.done < self.steps and not self.ends:
            self.take_due()
            if self.has_failed:
                self.recover()
            elif self.has_grown and self.policy == "elastic":
                self.grow()
            elif self.machines.lost() and not (self.policy == "elastic" and self.machines.lost() < self.workers):
                self.await_machines()
            else:
                self.step()
        self.keep()
        return self


def scenario(trace, policy, steps, workers):
    return {
        "schema_version": 1, "name": "spot-trace", "engine": {"name": "sim"},
        "workload": {"kind": "layers", "model": "resnet50", "batch": 4096 * workers, "dtype": "f16"},
        "strategy": {"name": "multi_worker_mirrored"},
        "topology": {"cluster": {"node": "dgx1-v100", "workers": workers}},
        "devices": {"type": "gpu", "per_worker": 8}, "steps": steps, "warmup_steps": 2,
        "faults": [{"trace": {"file": str(trace), "unit": "ms"}}],
        "recovery": {"policy": policy, "detection": "30s", "restart": "90s",
                     "checkpoint": {"every": f"{EVERY} steps", "time": "5s", "load": "20s"}},
    }


class Tandem:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.steps_s = {}

    def run(self, document):
        path = self.folder / "scenario.yaml"
        path.write_text(json.dumps(document))
        output = subprocess.run([self.program, "run", str(path), "--json"], capture_output=True, text=True, check=False)
        if output.returncode != 0:
            sys.exit(f"tandem run: {output.stderr}")
        return json.loads(output.stdout)

    def step_s(self, document, workers):
        """What the whole batch takes on so many machines, by a run without faults."""
        alone = {key: value for key, value in document.items() if key not in ("faults", "recovery")}
        batch = document["workload"]["batch"]
        of_all = document["topology"]["cluster"]["workers"]
        if (workers, of_all) in self.steps_s:
            return self.steps_s[workers, of_all]
        alone["workload"] = dict(document["workload"], batch=batch * workers // of_all)
        alone["topology"] = {"cluster": dict(document["topology"]["cluster"], workers=workers)}
        alone["steps"] = 10
        self.steps_s[workers, of_all] = batch / self.run(alone)["throughput"]["value"]
        return self.steps_s[workers, of_all]


def compare(tandem, trace, policy, steps, workers):
    """Prints both sums. Returns whether they agree."""
    document = scenario(trace, policy, steps, workers)
    job = tandem.run(document)["job"]
    known = {workers: Fraction(job["undisturbed_step_s"])}

    def step_s(machines):
        if machines not in known:
            known[machines] = Fraction(tandem.step_s(document, machines))
        return known[machines]

    replay = Replay(policy, read_trace(trace), steps, workers, step_s).run()
    seconds = replay.now
    counts = {"failures": replay.failures, "checkpoints": replay.checkpoints}
    times = {"steps_lost": (float(replay.steps_lost), job["steps_lost"], steps), "seconds": (float(seconds), job["seconds"], float(seconds))}
    for state in STATES:
        times[f"time_s.{state}"] = (float(replay.spent[state]), job["time_s"][state], float(seconds))
    agree = all(job[name] == count for name, count in counts.items()) and replay.ends == ("ended" in job)
    agree = agree and all(abs(here - there) <= AGREE * of for here, there, of in times.values())
    exact_lost = seconds - replay.spent["training"]
    print(f"{policy:12} {float(seconds):12.3f} {float(exact_lost):12.6f} {job['seconds'] - job['time_s']['training']:12.6f} "
          f"{float(replay.spent['training'] / seconds):8.4f} {replay.failures:6} {float(replay.steps_lost):9.1f}  "
          f"{'agree' if agree else 'DIFFER'}")
    if not agree:
        for name, (here, there, _) in times.items():
            print(f"    {name}: {here!r}, tandem {there!r}")
        for name, count in counts.items():
            print(f"    {name}: {count}, tandem {job[name]}")
        print(f"    ends: {replay.ends}, tandem: {job.get('ended')}")
    return agree


def made_trace(path, seed):
    """A trace whose machines come and go as those of a market do: many at one date."""
    draw = random.Random(seed)
    up, lines, number = [], [], 0
    for _ in range(6):
        number += 1
        up.append(f"node{number}")
        lines.append(f"0,add,node{number}")
    date = 500
    while len(lines) < 160:
        date += draw.choice([0, 0, 1_000, 20_000, 60_000, 300_000, 1_234_567])
        if draw.random() < 0.52 or len(up) < 2:
            number += 1
            up.append(f"node{number}")
            lines.append(f"{date},add,node{number}")
        else:
            lines.append(f"{date},remove,{up.pop(draw.randrange(len(up)))}")
    for _ in range(8):  # so that every place has a machine in the end
        number += 1
        lines.append(f"{date + 1000},add,node{number}")
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tandem")
    parser.add_argument("trace", nargs="?", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--self-test", action="store_true", help="traces that are made here, in place of a recorded one")
    options = parser.parse_args()
    if not options.self_test and options.trace is None:
        parser.error("a trace, or --self-test")
    print(f"{'policy':12} {'job s':>12} {'lost s, here':>12} {'tandem':>12} {'goodput':>8} {'losses':>6} {'steps':>9}")
    with tempfile.TemporaryDirectory() as folder:
        tandem = Tandem(options.tandem, pathlib.Path(folder))
        cases = [(options.trace and options.trace.resolve(), options.steps, options.workers)]
        if options.self_test:
            cases = []
            for seed in (1, 2):
                cases.append((pathlib.Path(folder) / f"made{seed}.csv", 12_000, 4))
                made_trace(cases[-1][0], seed)
        agree = [compare(tandem, *case[:1], policy, *case[1:]) for case in cases for policy in POLICIES]
    sys.exit(0 if all(agree) else 1)


if __name__ == "__main__":
    main()
