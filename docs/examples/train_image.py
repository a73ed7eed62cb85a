"""Trains a network that draws a picture: it gets the place of a pixel and gives the pixel's colour.

    python3 docs/examples/train_image.py WEIGHTS.safetensors           trains, in about three minutes, and writes the weights
    python3 docs/examples/train_image.py --check WEIGHTS.safetensors   says how well such weights draw the picture

NumPy alone is needed. The picture is drawn here. docs/examples/neural_image.cpp shows what the network makes of it.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy as np

SEED = 1
WIDTHS = [2, 64, 64, 64, 3]
BATCH = 4096
STEPS = 8000


# ---- The picture, for places from -1 to 1: x to the right, y up


def over(below, colour, share):
    """The colour laid over what is below."""
    return below + share[:, None] * (np.float32(colour) - below)


def inside(distance):
    """1 inside of a shape and 0 outside, by the distance from its edge, which is negative inside."""
    return np.clip(0.5 - distance / np.float32(0.04), 0, 1)


def picture(at):
    """Red, green and blue of each place: a row of `at`."""
    x, y = at.T
    colour = np.stack([0.10 + 0.08 * y, 0.14 + 0.10 * y, 0.30 + 0.16 * y], axis=1).astype(np.float32)
    for centre, radius, ink in (
        ((-0.42, 0.36), 0.46, (0.95, 0.35, 0.25)),
        ((0.10, 0.52), 0.40, (0.98, 0.78, 0.25)),
        ((-0.12, -0.02), 0.44, (0.25, 0.62, 0.85)),
    ):
        colour = over(colour, ink, 0.75 * inside(np.hypot(x - centre[0], y - centre[1]) - radius))
    # A ball, lit from above and the left.
    u, v = (x - 0.48) / np.float32(0.42), (y + 0.44) / np.float32(0.42)
    height = np.sqrt(np.maximum(1 - u * u - v * v, 0))
    light = np.maximum(-0.48 * u + 0.60 * v + 0.64 * height, 0)
    ball = (0.15 + 0.85 * light)[:, None] * np.float32([0.55, 0.85, 0.45]) + (0.7 * light**20)[:, None]
    share = inside(np.hypot(x - 0.48, y + 0.44) - 0.42)
    colour += share[:, None] * (ball - colour)
    # A ring.
    return over(colour, (0.95, 0.95, 0.9), inside(np.abs(np.hypot(x + 0.55, y + 0.55) - 0.26) - 0.05))


# ---- The network: each hidden layer gives the sines of its sums (Sitzmann and others, arXiv:2006.09661)


def new_weights(random):
    """For each layer its weights, a row for each output, and its biases."""
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        most = 20 if inputs == WIDTHS[0] else np.sqrt(6 / inputs)  # waves as short as the picture's edges are sharp
        layers.append([random.uniform(-most, most, (outputs, inputs)), random.uniform(-np.pi, np.pi, outputs)])
    layers[-1] = [layers[-1][0] / 10, np.full(WIDTHS[-1], 0.5)]
    return [[x.astype(np.float32) for x in layer] for layer in layers]


def forward(layers, at):
    """What each layer gets, and at last the colours; and the hidden layers' sums."""
    given, sums = [at], []
    for weights, bias in layers[:-1]:
        sums.append(given[-1] @ weights.T + bias)
        given.append(np.sin(sums[-1]))
    given.append(given[-1] @ layers[-1][0].T + layers[-1][1])
    return given, sums


def backward(layers, at, wanted):
    """The mean squared error of the colours, and its gradient by each weight."""
    given, sums = forward(layers, at)
    by_sums = given[-1] - wanted
    loss = np.mean(by_sums**2)
    by_sums *= np.float32(2 / by_sums.size)
    gradients = []
    for i in reversed(range(len(layers))):
        gradients.insert(0, [by_sums.T @ given[i], by_sums.sum(axis=0)])
        if i > 0:
            by_sums = (by_sums @ layers[i][0]) * np.cos(sums[i - 1])
    return loss, gradients


def train(steps):
    """By Adam (Kingma and Ba, arXiv:1412.6980), on other places of the picture in each step."""
    random = np.random.RandomState(SEED)
    layers = new_weights(random)
    means = [[np.zeros_like(x) for x in layer] for layer in layers]
    squares = [[np.zeros_like(x) for x in layer] for layer in layers]
    begin, losses = time.monotonic(), []
    for step in range(1, steps + 1):
        at = random.uniform(-1.05, 1.05, (BATCH, 2)).astype(np.float32)  # a little more than what is shown
        loss, gradients = backward(layers, at, picture(at))
        losses.append(loss)
        rate = 0.004 * (0.5 + 0.5 * np.cos(np.pi * step / steps))
        for layer, mean, square, gradient in zip(layers, means, squares, gradients):
            for j, g in enumerate(gradient):
                mean[j] += np.float32(0.1) * (g - mean[j])
                square[j] += np.float32(0.001) * (g * g - square[j])
                unbiased = square[j] / np.float32(1 - 0.999**step)
                layer[j] -= np.float32(rate / (1 - 0.9**step)) * mean[j] / (np.sqrt(unbiased) + np.float32(1e-8))
        if step % 500 == 0:
            print(f"step {step}: {decibels(np.mean(losses[-500:])):.1f} dB, {time.monotonic() - begin:.0f} s", flush=True)
    return layers, losses


def decibels(loss):
    """The peak signal-to-noise ratio: 20 is a rough sketch, 40 is hard to tell from the picture."""
    return -10 * np.log10(loss)


# ---- The file, as github.com/huggingface/safetensors#format says: the header's length, the header, the elements


def save(path, layers):
    """Weights in half precision, biases in single: layer.0.weight, layer.0.bias, and so on."""
    header, elements = {}, b""
    for kind, dtype, code in (("weight", np.float16, "F16"), ("bias", np.float32, "F32")):
        for i, layer in enumerate(layers):
            x = layer[kind == "bias"].astype(dtype)
            begin = len(elements)
            elements += x.tobytes()
            header[f"layer.{i}.{kind}"] = {"dtype": code, "shape": x.shape, "data_offsets": [begin, len(elements)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + elements)


def load(path):
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])

    def tensor(name):
        begin, past = header[name]["data_offsets"]
        dtype = {"F16": np.float16, "F32": np.float32}[header[name]["dtype"]]
        return np.frombuffer(data[end + begin : end + past], dtype).reshape(header[name]["shape"]).astype(np.float32)

    return [[tensor(f"layer.{i}.weight"), tensor(f"layer.{i}.bias")] for i in range(len(WIDTHS) - 1)]


def quality(layers):
    """How well the network draws the picture, of 256 x 256 pixels, in decibels."""
    middles = (np.arange(256, dtype=np.float32) + 0.5) / 128 - 1
    at = np.stack(np.meshgrid(middles, middles), axis=2).reshape(-1, 2)
    return decibels(np.mean((forward(layers, at)[0][-1] - picture(at)) ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("weights", type=pathlib.Path)
    arguments = parser.parse_args()
    if not arguments.check:
        save(arguments.weights, train(STEPS)[0])
    drawn = quality(load(arguments.weights))
    print(f"{arguments.weights}: {drawn:.1f} dB")
    if drawn < 30:
        sys.exit("the weights do not draw the picture")
    if arguments.check:  # the training too
        losses = train(100)[1]
        if not np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10]):
            sys.exit("a hundred steps do not lower the loss")


if __name__ == "__main__":
    main()
