"""Compares the logits of two files that llama-results has written.

Usage: logits.py FIRST SECOND BOUND. It fails where two differ by more than BOUND times the root of the mean square of all of FIRST's,
and where that is no number above 0. It needs python3-gguf.
"""
import sys

import gguf
import numpy as np


def read(path):
    tensors = {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}
    return tensors["tokens"], tensors["logits"].astype(np.float64)


def main():
    (first_tokens, first), (second_tokens, second) = read(sys.argv[1]), read(sys.argv[2])
    bound = float(sys.argv[3])
    if not np.array_equal(first_tokens, second_tokens) or first.shape != second.shape:
        sys.exit(f"the files are of different prompts: {first.shape} and {second.shape} logits")
    size = np.sqrt(np.mean(first**2))
    difference = np.max(np.abs(first - second)) / size
    print(f"{first_tokens.size} tokens, {first.size} logits: the largest difference is {difference:.1e} of their size")
    if not (size > 0 and difference <= bound):
        sys.exit(f"the bound is {bound:.1e}")


main()
