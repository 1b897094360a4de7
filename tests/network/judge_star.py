"""judge_star.py MEASURED EXPECTED HOSTS RATE_MBIT: compares a run on shaped hosts with one in a process, and the time of
its largest all-reduce with what the rate allows."""
import json
import sys

measured, expected = (json.load(open(path)) for path in sys.argv[1:3])
hosts, bytes_per_s = int(sys.argv[3]), float(sys.argv[4]) * 1e6 / 8

assert measured["engine"] == "mpi" and measured["workers"] == hosts, measured["workers"]
assert measured["settings"]["ranks"] == f"{hosts} on {hosts} hosts", measured["settings"]["ranks"]
worst = max(abs(a - b) / b for a, b in zip(measured["loss"], expected["loss"], strict=True))
assert worst < 1e-4, f"losses differ by {worst:.2g} of themselves"

largest = max(measured["collectives"], key=lambda collective: collective["bytes"])
seconds = largest["time_ns"] * 1e-9
# A host sends and receives 2 (n - 1) / n of the buffer at least; a token bucket holds a burst back for nobody.
least = 2 * (hosts - 1) / hosts * largest["bytes"] / bytes_per_s
print(f"all_reduce of {largest['bytes']:.0f} bytes on {hosts} hosts at {bytes_per_s * 8e-6:g} Mbit/s: {seconds * 1e3:.1f} ms, "
      f"at least {least * 1e3:.1f} ms; clocks within {measured['settings']['clock_error_us']} us; losses within {worst:.1g}")
assert 0.9 * least < seconds < 4 * least, "the time is not the network's"
