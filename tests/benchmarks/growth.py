#!/usr/bin/env python3
"""Prints how the cost of a simulation grows with the devices and with the layers.

    tests/benchmarks/growth.py build/rel/tests/benchmarks/tandem_sim_benchmarks

Each row is the median of three runs, each a process of its own, so that its memory is that of its run.
"""
import argparse
import datetime
import json
import statistics
import subprocess

DEVICES = [8, 64, 512, 4096, 32768, 262144, 1048576]
LAYERS = [12, 24, 48, 96, 192]
RUNS = 3


def measure(program, name):
    text = subprocess.run([program, f"--benchmark_filter=^{name}/iterations:1$", "--benchmark_format=json"],
                          check=True, capture_output=True, text=True).stdout
    runs = json.loads(text)["benchmarks"] if text else []
    if len(runs) != 1:
        raise SystemExit(f"no benchmark {name}")
    return runs[0]["cpu_time"], runs[0]["peak_rss_mb"]


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "a machine")


def print_table(program, title, benchmark, arguments):
    print(f"| {title} | CPU time | resident memory |\n|---|---|---|")
    for argument in arguments:
        runs = [measure(program, f"{benchmark}/{argument}") for _ in range(RUNS)]
        seconds, megabytes = (statistics.median(figures) for figures in zip(*runs))
        print(f"| {argument:,} | {seconds:.2f} s | {megabytes:,.0f} MB |", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tandem_sim_benchmarks")
    program = parser.parse_args().program
    print(f"Measured on {datetime.date.today()} on {processor()}, medians of {RUNS} runs.\n")
    print_table(program, "GPUs", "alike_replicas_on_a_fat_tree", DEVICES)
    print_table(program, "layers", "layers_of_a_model", LAYERS)


if __name__ == "__main__":
    main()
