"""judge_predictions.py FOLDER NETWORK...: how far the simulated step is from the measured one on each network."""
import json
import sys

# The hosts share the processors of this machine with whatever else it does, so the bound is wide; a wrong model, such as
# ports that carry twice what they do, is beyond it. Each message of a parameter server waits for a processor, too, and
# its simulation leaves those messages out that carry no values.
MOST = 0.35
MOST_WITH_SERVER = 0.5
folder, networks = sys.argv[1], sys.argv[2:]
bad = []
for network in networks:
    comparison = json.load(open(f"{folder}/{network}.json"))["comparisons"][0]
    measured, predicted = (comparison[run]["step_time_ns"]["median"] for run in ("measured", "predicted"))
    error = predicted / measured - 1
    print(f"{network}: measured {measured / 1e6:.1f} ms (noise {comparison['noise'] * 100:.1f} %), "
          f"simulated {predicted / 1e6:.1f} ms, {error * 100:+.1f} %")
    if abs(error) > (MOST_WITH_SERVER if "server" in network else MOST):
        bad.append(network)
assert not bad, f"too far off: {', '.join(bad)}"
