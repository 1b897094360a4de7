#!/usr/bin/env python3
"""Prints how the cost of a simulation grows with the devices and with the layers.

    tests/benchmarks/growth.py build/rel/tests/benchmarks/tandem_sim_benchmarks

Each row is a process of its own, so that its memory is that of its run.
"""
import argparse
import json
import subprocess

DEVICES = [8, 64, 512, 4096, 32768, 262144, 1048576]
LAYERS = [12, 24, 48, 96, 192]


def measure(program, name):
    text = subprocess.run([program, f"--benchmark_filter=^{name}/iterations:1$", "--benchmark_format=json"],
                          check=True, capture_output=True, text=True).stdout
    runs = json.loads(text)["benchmarks"]
    if len(runs) != 1:
        raise SystemExit(f"no benchmark {name}")
    return runs[0]["cpu_time"], runs[0]["peak_rss_mb"]


def print_table(program, title, benchmark, arguments):
    print(f"| {title} | CPU time | resident memory |\n|---|---|---|")
    for argument in arguments:
        seconds, megabytes = measure(program, f"{benchmark}/{argument}")
        print(f"| {argument:,} | {seconds:.2f} s | {megabytes:,.0f} MB |", flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="tandem_sim_benchmarks")
    program = parser.parse_args().program
    print_table(program, "GPUs", "alike_replicas_on_a_fat_tree", DEVICES)
    print_table(program, "layers", "layers_of_a_model", LAYERS)


if __name__ == "__main__":
    main()
