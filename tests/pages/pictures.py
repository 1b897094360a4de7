#!/usr/bin/python3
"""Makes the pictures of the README and of docs/: pictures.py TANDEM SCENARIOS FOLDER (docs/pictures).

Simulates examples, and compares some with what this machine measures, which should do nothing else; opens their pages in
headless Chromium, and writes parts of them as PNG. Exit code 77: no browser here.
"""
import collections
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

from browser import find_browser, open_browser, photograph

MOST_BYTES = 100_000
EDGE = 6


def tandem(program, *arguments, codes=(0,)):
    result = subprocess.run([program, *map(str, arguments), "-q"], capture_output=True, text=True)
    if result.returncode not in codes:
        sys.exit(f"{arguments}: exit code {result.returncode}\n{result.stderr}")


def write_history(program, scenarios, work):
    """A simulation before and after changes of its scenario."""
    text = (scenarios / "bert-large-hgx-h100.yaml").read_text()
    scenario = work / "bert-large-hgx-h100.yaml"
    history = work / "history.jsonl"
    buckets = ["25MB"] * 5 + ["5MB"] * 4 + ["50MB"] * 6
    for number, bucket in enumerate(buckets):
        scenario.write_text(text.replace("bucket_bytes: 25MB", f"bucket_bytes: {bucket}"))
        accept = ["--update"] if number in (5, 9) else []
        tandem(program, "check", scenario, "--history", history, "--commit", f"{(number + 1) * 0x9E3779B1:x}"[-8:], *accept)
    return history


def write_pages(program, scenarios, work):
    for example in ("pipeline-parallel", "resnet50-4x-hgx-h100", "bert-large-fully-sharded"):
        tandem(program, "run", scenarios / f"{example}.yaml", "--html", work / f"{example}.html")
    tandem(program, "compare", scenarios / "digits.yaml", "--replicas", "2", "--html", work / "compare.html")
    tandem(program, "compare", scenarios / "digits.yaml", "--all", "--html", work / "strategies.html")
    tandem(program, "history", write_history(program, scenarios, work), "--html", work / "history.html")


# A file, its page, and what it shows: from the first to the last of the parts with these names.
PICTURES = [
    ("run.png", "pipeline-parallel.html", "h1", "Timeline of the median step"),
    ("links.png", "resnet50-4x-hgx-h100.html", "Use of the links of the topology", "Use of the links of the topology"),
    ("collectives.png", "bert-large-fully-sharded.html", "Bus bandwidth of collectives by size", "Bus bandwidth of collectives by size"),
    ("compare.png", "compare.html", "From the measured step to the simulated one", "From the measured step to the simulated one"),
    ("steps.png", "compare.html", "Timelines of the median steps, measured, and simulated below each stream",
     "Timelines of the median steps, measured, and simulated below each stream"),
    ("strategies.png", "strategies.html", "Parts of a step of each strategy, measured and simulated",
     "Parts of a step of each strategy, measured and simulated"),
    ("history.png", "history.html", "Simulated step time of each run, which repeats exactly",
     "Simulated step time of each run, which repeats exactly"),
]

BOX = """
const name = arguments[0];
const found = [...document.querySelectorAll('h1, svg[role=img]')].find(
    e => e.localName === name || e.querySelector('title')?.textContent === name);
if (!found) return null;
const box = found.getBoundingClientRect();
return [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY];
"""


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels_of(data, width, height, size):
    """The rows of an image whose rows were filtered (PNG, section 9)."""
    stride, rows, above = width * size, [], bytes(width * size)
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for i in range(stride):
            left, up, corner = (row[i - size], above[i], above[i - size]) if i >= size else (0, above[i], 0)
            if kind == 1:
                row[i] = row[i] + left & 255
            elif kind == 2:
                row[i] = row[i] + up & 255
            elif kind == 3:
                row[i] = row[i] + (left + up) // 2 & 255
            elif kind == 4:
                guess = left + up - corner
                distances = abs(guess - left), abs(guess - up), abs(guess - corner)
                row[i] = row[i] + (left, up, corner)[distances.index(min(distances))] & 255
        rows.append(bytes(row))
        above = row
    return rows


def smaller(png):
    """The picture with a palette of its 256 most frequent colors; others become the nearest of them."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}.get(kind)
    if depth != 8 or size is None:
        return png
    at, packed = 8, b""
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        packed += png[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    rows = pixels_of(zlib.decompress(packed), width, height, size)
    colors = [[row[i:i + 3] for i in range(0, len(row), size)] for row in rows]
    counts = collections.Counter(color for row in colors for color in row)
    palette = [color for color, _ in counts.most_common(256)]
    place = {color: index for index, color in enumerate(palette)}
    for color in counts:
        if color not in place:
            place[color] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(palette[i], color)))
    data = b"".join(b"\0" + bytes(place[color] for color in row) for row in colors)
    return (png[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) + chunk(b"PLTE", b"".join(palette)) +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def part_of(browser, first, last):
    boxes = [browser.execute_script(BOX, name) for name in (first, last)]
    for name, box in zip((first, last), boxes):
        if box is None:
            sys.exit(f"{browser.title}: has no picture '{name}'")
    left, right = min(box[0] for box in boxes) - EDGE, max(box[2] for box in boxes) + EDGE
    top, bottom = boxes[0][1] - EDGE, boxes[1][3] + EDGE
    return smaller(photograph(browser, {"x": left, "y": top, "width": right - left, "height": bottom - top}))


def main():
    program, scenarios, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    find_browser()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as profile:
        work = pathlib.Path(work)
        write_pages(program, scenarios, work)
        browser = open_browser(profile)
        try:
            for file, page, first, last in PICTURES:
                browser.get((work / page).as_uri())
                picture = part_of(browser, first, last)
                if len(picture) > MOST_BYTES:
                    sys.exit(f"{file}: {len(picture)} bytes, at most {MOST_BYTES}")
                (folder / file).write_bytes(picture)
                print(f"{file}: {len(picture)} bytes")
        finally:
            browser.quit()


main()
