"""other_network.py CLUSTER [--slow MACHINE FACTOR] [--leaf MACHINE,... FACTOR]: a calibrated cluster whose network is another
one, on stdout. Without its collectives, which are those of the network that was measured. The ports of a slow machine have
so much of their rate; machines of a leaf are behind a switch of their own, whose cable to the first one has so much of the
rate of their ports."""
import argparse
import re
import sys

parser = argparse.ArgumentParser()
parser.add_argument("cluster")
parser.add_argument("--slow", nargs=2)
parser.add_argument("--leaf", nargs=2)
arguments = parser.parse_args()
text = open(arguments.cluster).read()
text = text[: text.index("\ncollectives:") + 1]


def change(pattern, replacement):
    global text
    text, count = re.subn(pattern, replacement, text, flags=re.M)
    assert count > 0, pattern


def scaled(model, factor):
    return re.sub(r"(bandwidth: {value: )([0-9.]+)", lambda match: f"{match[1]}{float(match[2]) * float(factor)}", model)


if arguments.slow:
    machine, factor = arguments.slow
    change(rf'^  "{machine}_(?:port|sends|receives)":\n(?:    .*\n)+', lambda match: scaled(match[0], factor))
if arguments.leaf:
    machines, factor = arguments.leaf[0].split(","), arguments.leaf[1]
    cable = re.search(rf'from: "{machines[0]}\.nic0", to: "fabric\.switch0", model: "([^"]*)"', text)
    model = re.search(rf'^  "{cable[1]}":\n((?:    .*\n)+)', text, flags=re.M)[1]
    change(r"^link_models:\n", f'link_models:\n  "spine":\n{scaled(model, factor)}')
    for machine in machines:
        change(rf'(from: "{machine}\.nic0", to: "fabric\.)switch0', r"\1switch1")
        text = re.sub(rf'(from: "fabric\.)switch0(", to: "{machine}\.nic0)', r"\1switch1\2", text)
    change(r'^(  - {name: "fabric\.)switch0(".*)$', r"\1switch0\2\n\1switch1\2")
    change(r"^links:$", f'links:\n  - {{from: "fabric.switch0", to: "fabric.switch1", model: "spine"}}')
sys.stdout.write(text)
