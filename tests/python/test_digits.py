"""The network that reads digits: the weights that are stored, and how docs/examples/train_digits.py makes them."""

import importlib.util
import pathlib

import numpy as np
import pytest

import glgemm

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def train():
    spec = importlib.util.spec_from_file_location("train_digits", ROOT / "docs/examples/train_digits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stored_weights(train):
    model = glgemm.load(ROOT / "tests/data/digits.safetensors")
    images, labels, learnt, held_out = train.load_digits()
    assert len(held_out) == 359 and sorted([*learnt, *held_out]) == list(range(1797))
    assert train.accuracy(model, images[held_out], labels[held_out]) >= 0.97
    assert train.accuracy(model, 1 - images[held_out], labels[held_out]) < 0.5  # which a test of nothing would not see
    examples = model["examples"].reshape(10, 8, 8, 1) / np.float32(16)
    assert train.accuracy(model, examples, np.arange(10)) == 1


def test_the_gradient(train):
    """The loss a step along the gradient of each weight, and against it, differ by the gradient's square."""
    images, labels, *_ = train.load_digits()
    random = np.random.RandomState(5)
    weights = train.new_weights(random)
    for name in weights:
        if name.endswith("bias"):
            # Blank parts of an image have this value: no step may take it over the edge of a ReLU.
            weights[name] += random.uniform(0.05, 0.15, weights[name].shape).astype(np.float32)
    gradients = train.backward(weights, images[:40], labels[:40])[1]
    assert gradients.keys() == weights.keys()
    for name, g in gradients.items():
        step = np.float32(0.01 / np.sqrt(np.sum(g * g)))
        there, back = ({**weights, name: weights[name] + sign * step * g} for sign in (1, -1))
        change = train.backward(there, images[:40], labels[:40])[0] - train.backward(back, images[:40], labels[:40])[0]
        assert change == pytest.approx(2 * step * np.sum(g * g), rel=0.02), name


def test_steps_lower_the_loss(train, tmp_path):
    images, labels, learnt, _ = train.load_digits()
    training = train.Training(train.new_weights(np.random.RandomState(5)), 40)
    some = learnt[:64]
    losses = [training.learn(images[some], labels[some]) for _ in range(20)]
    assert losses[0] > 2 and losses[-1] < 0.5 * losses[0]
    train.save(tmp_path / "weights.safetensors", training.weights)
    stored = glgemm.load(tmp_path / "weights.safetensors")
    assert all(np.array_equal(stored[name], w) for name, w in training.weights.items())
