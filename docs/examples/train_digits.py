"""Trains a small convolutional network to read handwritten digits of 8 x 8 pixels, with all of its matrix products on the GPU.

    python3 docs/examples/train_digits.py [WEIGHTS.safetensors]

Forward and backward, each convolution and each product is glgemm's, and NumPy does the rest, element by element. A fifth of the
digits is held out, to judge the network.
"""

import json
import pathlib
import sys
import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import glgemm

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data"
SEED = 1
BATCH = 64
EPOCHS = 80


def load_digits():
    """The images, their labels, and the numbers of those that are learnt and of the fifth that is held out."""
    images = np.load(DATA / "digits.npy").reshape(-1, 8, 8, 1) / np.float32(16)
    labels = np.load(DATA / "digits_labels.npy")
    order = np.random.RandomState(SEED).permutation(len(images))  # RandomState has the same numbers in all versions of NumPy
    held_out = len(images) // 5
    return images, labels, order[held_out:], order[:held_out]


# The last layer is dense: its filters are as large as its images.
LAYERS = {
    "conv1": {"shape": (16, 3, 3, 1), "stride": 1, "padding": 1},
    "conv2": {"shape": (32, 3, 3, 16), "stride": 2, "padding": 1},
    "dense": {"shape": (10, 4, 4, 32), "stride": 1, "padding": 0},
}


def new_weights(random):
    """Filters in the order OHWI: a row of elements for each output channel."""
    weights = {}
    for name, layer in LAYERS.items():
        channels, *filters = layer["shape"]
        scale = np.sqrt(2 / np.prod(filters))
        weights[name + ".weight"] = (random.standard_normal(layer["shape"]) * scale).astype(np.float32)
        weights[name + ".bias"] = np.zeros(channels, np.float32)
    return weights


def forward(weights, images):
    """The images (NHWC), what each layer makes of them, and at last ten scores for each image."""
    maps = [images]
    for name, layer in LAYERS.items():
        terms = {"stride": layer["stride"], "padding": layer["padding"], "activation": None if name == "dense" else "relu"}
        maps.append(glgemm.convolve(maps[-1], weights[name + ".weight"], weights[name + ".bias"], **terms))
    return maps


def patches(images, size, stride, padding):
    """The matrix with a row for each position of a filter: the elements that lie under it."""
    bordered = np.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    windows = sliding_window_view(bordered, (size, size), (1, 2))[:, ::stride, ::stride]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, size * size * images.shape[3])


def backward(weights, images, labels):
    """The mean cross entropy of the scores, and its gradient by each weight."""
    *inputs, scores = forward(weights, images)
    odds = np.exp(scores - scores.max(axis=3, keepdims=True))
    odds /= odds.sum(axis=3, keepdims=True)
    chosen = np.arange(len(labels)), 0, 0, labels
    loss = -np.log(odds[chosen] + 1e-30).mean()
    odds[chosen] -= 1
    by_outputs = odds / np.float32(len(labels))
    gradients = {}
    for (name, layer), maps in zip(reversed(LAYERS.items()), reversed(inputs)):
        (channels, size, *_), stride, padding = layer.values()
        rows = by_outputs.reshape(-1, channels)
        gradients[name + ".weight"] = glgemm.matmul(rows.T, patches(maps, size, stride, padding)).reshape(layer["shape"])
        gradients[name + ".bias"] = rows.sum(axis=0)
        if maps is not images:  # whose elements are a ReLU's outputs
            terms = {"stride": stride, "padding": padding, "output_padding": stride - 1, "transposed": True}
            by_outputs = glgemm.convolve(by_outputs, weights[name + ".weight"], **terms) * (maps > 0)
    return loss, gradients


def accuracy(weights, images, labels):
    return np.mean(forward(weights, images)[-1].argmax(axis=3).ravel() == labels)


class Training:
    """Steps by Adam (Kingma and Ba, arXiv:1412.6980), whose rate sinks to 0."""

    def __init__(self, weights, steps):
        self.weights, self.steps, self.step = weights, steps, 0
        self.means = {name: np.zeros_like(w) for name, w in weights.items()}
        self.squares = {name: np.zeros_like(w) for name, w in weights.items()}

    def learn(self, images, labels):
        """A step; returns the loss before it."""
        loss, gradients = backward(self.weights, images, labels)
        rate = 0.006 * (1 - self.step / self.steps)
        self.step += 1
        for name, g in gradients.items():
            self.means[name] += 0.1 * (g - self.means[name])
            self.squares[name] += 0.001 * (g * g - self.squares[name])
            mean, square = self.means[name] / (1 - 0.9**self.step), self.squares[name] / (1 - 0.999**self.step)
            self.weights[name] -= np.float32(rate) * mean / (np.sqrt(square) + np.float32(1e-8))
        return loss


def varied(images, random):
    """The images with strokes that are lighter or darker, each moved by up to a pixel: digits drawn by mouse are not centred."""
    moved = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    y, x = random.randint(0, 3, (2, len(images), 1, 1))
    moved = moved[np.arange(len(images))[:, None, None], y + np.arange(8)[:, None], x + np.arange(8)]
    return np.minimum(moved * random.uniform(0.7, 1.8, (len(images), 1, 1, 1)).astype(np.float32), 1)


def save(path, tensors):
    """As github.com/huggingface/safetensors#format says: the header's length, the header, the elements."""
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = {"dtype": {"f": "F32", "u": "U8"}[x.dtype.kind], "shape": x.shape, "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(x.tobytes() for x in tensors.values()))


def main():
    begin = time.monotonic()
    images, labels, learnt, held_out = load_digits()
    random = np.random.RandomState(SEED)
    training = Training(new_weights(random), EPOCHS * (len(learnt) // BATCH))
    for epoch in range(1, EPOCHS + 1):
        order = random.permutation(learnt)[: len(learnt) // BATCH * BATCH].reshape(-1, BATCH)
        loss = np.mean([training.learn(varied(images[some], random), labels[some]) for some in order])
        right = accuracy(training.weights, images[held_out], labels[held_out])
        seconds = time.monotonic() - begin
        print(f"epoch {epoch:2}: loss {loss:.4f}, {100 * right:.2f} % of the held-out digits are right, {seconds:.1f} s")
    if len(sys.argv) > 1:
        digits = [held_out[labels[held_out] == digit][0] for digit in range(10)]  # one of each, to show
        examples = (16 * images[digits]).astype(np.uint8).reshape(10, 8, 8)
        save(pathlib.Path(sys.argv[1]), {**training.weights, "examples": examples})


if __name__ == "__main__":
    main()
