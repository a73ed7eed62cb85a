#!/usr/bin/env python3
"""Pictures in SVG as programs draw them that know neither CSS's variables nor its dark pages: on white, in colours, with dark text.

  rendered.py GLGEMM

Renders a plan and a plot of tools/plot by rsvg-convert (package librsvg2-bin). Without it the test is skipped and says so, or
fails where the variable CI is set; likewise the plot without Matplotlib (python3-matplotlib).
"""
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib


def pixels(path):
    """The colours of an image, "#rrggbb" with their numbers of pixels, and the upper left corner's colour. 8 bits each, as rsvg-convert writes."""
    data = path.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    size = {2: 3, 6: 4}[kind]  # bytes of a pixel: without and with what is transparent
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and depth == 8, "no PNG of 8 bits"
    packed, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    raw, counts, above, corner, row = zlib.decompress(packed), collections.Counter(), bytes(size * width), None, size * width + 1
    for y in range(height):
        method, line = raw[y * row], bytearray(raw[y * row + 1:(y + 1) * row])
        for i in range(size * width if method else 0):
            left, up, both = line[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
            near = min((abs(up - both), 0, left), (abs(left - both), 1, up), (abs(left + up - 2 * both), 2, both))[2]
            line[i] = line[i] + (0, left, up, (left + up) // 2, near)[method] & 255
        colours = ["#" + line[i:i + 3].hex() if line[i + 3:i + size] in (b"", b"\xff") else "clear" for i in range(0, size * width, size)]
        counts.update(colours)
        corner, above = corner or colours[0], line
    return counts, corner


def faults_of(svg, expected):
    """What is wrong with a picture: `expected` are colours of which it has at least so many pixels."""
    image = svg.with_suffix(".png")
    subprocess.run(["rsvg-convert", "-w", "480", svg, "-o", image], check=True)
    counts, corner = pixels(image)
    faults = [] if corner == "#ffffff" else [f"its corner is {corner}"]
    if 20 * counts["#000000"] > counts.total():
        faults.append(f"{counts['#000000']} of {counts.total()} pixels are black")
    return faults + [f"{counts[colour]} pixels are {colour}, not {least}" for colour, least in expected.items() if counts[colour] < least]


def result(n, kernel, rate):
    return {"m": n, "n": n, "k": n, "type": "f32", "requested": kernel, "kernel": kernel, "gflops": rate, "baseline": {"gflops": 2},
            "check": {"worst_ratio": 1e-3, "median_ratio": 1e-4}}


def main():
    glgemm, failures, left_out = os.path.realpath(sys.argv[1]), [], []
    plot = pathlib.Path(__file__).resolve().parent.parent.parent / "tools/plot"
    if not shutil.which("rsvg-convert"):
        print("LEFT OUT: pictures as librsvg draws them, since rsvg-convert (librsvg2-bin) is not here")
        return 1 if os.environ.get("CI") else 77
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        run = [glgemm, "inspect", "--size", "1024", "--as", "nvidia-ampere", "--image", "plan.svg"]
        bench = {"roofline": {"gflops": 2000, "storage_gb_per_s": 400, "image_gb_per_s": 300},
                 "results": [result(n, kernel, n * rate) for n in (64, 128, 256) for kernel, rate in (("auto", 2), ("tiled", 1))]}
        (work / "bench.json").write_text(json.dumps(bench))
        subprocess.run(run, cwd=work, check=True, stdout=subprocess.DEVNULL)
        # The classes' own colours, and the text's.
        pictures = {"plan.svg": {"#0072b2": 200, "#d55e00": 200, "#009e73": 200, "#1b1b1b": 9}}
        if subprocess.run([plot, "bench.json"], cwd=work, stdout=subprocess.DEVNULL).returncode == 0:
            pictures["plots/gflops.svg"] = {"#0072b2": 30, "#d55e00": 30, "#1b1b1b": 9}
        else:
            left_out.append("a plot as librsvg draws it, since Matplotlib (python3-matplotlib) is not here")
        for name, expected in pictures.items():
            failures += [f"{name}: {fault}" for fault in faults_of(work / name, expected)]
        # The test sees what it is there for: colours that only CSS has.
        bare = re.sub(r' (fill|stroke)="#[0-9a-f]*"', "", (work / "plan.svg").read_text())
        (work / "bare.svg").write_text(bare)
        if len(faults_of(work / "bare.svg", pictures["plan.svg"])) < 3:
            failures.append("a picture without colours passes")
    for line in left_out:
        print("LEFT OUT:", line)
    for failure in failures:
        print("FAILED:", failure)
    print("failed" if failures else "all passed")
    return 1 if failures or (left_out and os.environ.get("CI")) else 0


if __name__ == "__main__":
    sys.exit(main())
