#!/usr/bin/env python3
"""How much faster two ranks multiply than one, beside what this machine gives two processes that only count.

  scaling.py GLGEMM_DISTRIBUTED_TESTS [--size N] [--rounds R] [--least SHARE] [--json FILE]

Each round runs one rank, two ranks, one counting process and two, in this order. Prints for each round, and as the median of all,
the speed-ups and the first as a share of the second. One thread for each rank. Ends with 1 where the median share is below SHARE.
--json writes the medians for tools/plot.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

COUNT = """
import time
end = time.monotonic() + 2
n = 0
while time.monotonic() < end:
    for _ in range(1000): pass
    n += 1
print(n)
"""


def count(processes):
    running = [subprocess.Popen([sys.executable, "-c", COUNT], stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return sum(int(one.communicate()[0]) for one in running)


def milliseconds(program, ranks, size):
    output = subprocess.run(["mpirun", "-q", "--oversubscribe", "-np", str(ranks), program, "rate", str(size)], check=True,
                            stdout=subprocess.PIPE, text=True).stdout
    return float(re.search(r"^ms ([0-9.e+]+)", output, re.M)[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--least", type=float, default=0)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    os.environ.update(LP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    rounds = []
    for _ in range(arguments.rounds):
        one, two = (milliseconds(arguments.program, ranks, arguments.size) for ranks in (1, 2))
        spinning = count(2) / count(1)
        rounds.append((one / two, spinning, one / two / spinning))
        print(f"1 rank {one:.0f} ms, 2 ranks {two:.0f} ms: {one / two:.2f} times as fast; counting {spinning:.2f}; share "
              f"{one / two / spinning:.3f}", flush=True)
    speed_up, spinning, share = (statistics.median(column) for column in zip(*rounds))
    print(f"N = {arguments.size}, medians of {arguments.rounds}: ranks {speed_up:.2f}, counting {spinning:.2f}, share {share:.3f}")
    if arguments.json:
        shape = {"m": arguments.size, "n": arguments.size, "k": arguments.size, "type": "f32"}
        results = [{**shape, "ranks": ranks, "speed_up": times, "threads_speed_up": control}
                   for ranks, times, control in ((1, 1, 1), (2, speed_up, spinning))]
        with open(arguments.json, "w") as file:
            json.dump({"results": results}, file, indent=2)
    return 0 if share >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
