"""What a user sees of the package: doctests, help, the tutorial, hints for types."""

import doctest
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest

import glgemm

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(glgemm.__file__).parent


def test_doctests():
    done = doctest.testmod(glgemm)
    assert done.failed == 0 and done.attempted > 10


@pytest.mark.skipif(not (ROOT / "docs/weights.md").exists(), reason="the page is not here")
def test_the_page_of_weights():
    assert doctest.testfile(str(ROOT / "docs/weights.md"), module_relative=False).failed == 0


@pytest.mark.skipif(not (ROOT / "docs/matrix-cores.md").exists(), reason="the page is not here")
def test_the_page_of_matrix_cores():
    assert doctest.testfile(str(ROOT / "docs/matrix-cores.md"), module_relative=False).failed == 0


@pytest.mark.skipif(not (ROOT / "docs/python.md").exists(), reason="the page is not here")
def test_the_tutorial():
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    assert doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False).failed == 0
    assert all(name in text for name, _ in glgemm._core.types_of_c)
    for block in re.findall(r"^```python\n(.*?)^```", text, re.S | re.M):  # parts of programs that are run
        for part in block.split("...\n"):
            assert part in (ROOT / "docs/examples/moderngl_draw.py").read_text(encoding="utf-8")


def test_the_example(tmp_path):
    pytest.importorskip("moderngl")
    image = tmp_path / "product.ppm"
    subprocess.run([sys.executable, str(ROOT / "docs/examples/moderngl_draw.py"), str(image)], check=True, timeout=120)
    pixels = np.frombuffer(image.read_bytes().split(b"\n", 3)[3], np.uint8).reshape(256, 256, 3).astype(float)
    x, y = np.linspace(0, 12, 256), np.linspace(0, 1, 256) ** 2 * 16
    c = np.sin(x[:, None] + y)
    end = np.where(c[..., None] < 0, [0.13, 0.40, 0.67], [0.70, 0.09, 0.17])
    expected = 255 * (1 + (end - 1) * abs(c)[..., None])
    assert abs(pixels - expected).max() <= 2
    assert pixels.std() > 20


def test_help_has_everything():
    text = pydoc.plain(pydoc.render_doc(glgemm))
    for name in glgemm.__all__[:-1]:  # without __version__
        assert name in text
        assert len(getattr(glgemm, name).__doc__) > 30, name
    on_devices = (glgemm.Engine, glgemm.Array, glgemm.Accelerators, glgemm.Future, glgemm.Job, glgemm.Fence, glgemm.Stopwatch)
    for kind in (*on_devices, glgemm.Quantized, glgemm.Model, glgemm.Report, glgemm.JobReport):
        for name in vars(kind):
            if not name.startswith("_") and name != "progress":
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"


def test_modules_import_those_before_them():
    order = ["_core", "_arrays", "_weights", "_engine", "_products", "_stream", "_convolve", "_mlp"]
    for place, module in enumerate(order[1:], 1):
        text = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
        imported = re.findall(r"^ *from \.(\w+) import", text, re.M) + ["_core"] * ("from . import _core" in text)
        assert set(imported) <= set(order[:place]), module
    others = {path.stem for path in FOLDER.glob("_*.py")} - set(order) - {"__init__"}
    assert not others


@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_what_pip_installs(kind, tmp_path, monkeypatch):
    """The packages that tools/python_package.py makes of the extension that is tested here."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import python_package

    monkeypatch.setattr(python_package, "build", lambda folder: pathlib.Path(glgemm._core.__file__))
    made, told, installed = tmp_path / "made", tmp_path / "told", tmp_path / "installed"
    made.mkdir()
    told.mkdir()
    file = getattr(python_package, f"build_{kind}")(str(made))
    info = getattr(python_package, f"prepare_metadata_for_build_{kind}")(str(told))
    with zipfile.ZipFile(made / file) as wheel:
        wheel.extractall(installed)
        names = wheel.namelist()
    for entry in (told / info).iterdir():  # what pip reads before is what it gets
        assert entry.read_bytes() == (installed / info / entry.name).read_bytes()
    assert ("glgemm/_products.py" in names) == (kind == "wheel")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    code = "import glgemm, numpy as np; print(glgemm.__path__[0], glgemm.matmul(np.eye(2, dtype='f4'), np.ones((2, 1), 'f4')).sum())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{installed / 'glgemm'} 2.0\n", done.stderr


def test_the_tag_of_a_wheel(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import python_package

    def tag_of(*libraries):
        file = tmp_path / "module.so"
        source = "#include <math.h>\ndouble f(double x) { return exp(x); }\n"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", file, "-Wl,--no-as-needed", *libraries]
        subprocess.run(command, input=source, text=True, check=True)
        return python_package.tag(file)

    assert re.fullmatch(r"cp3\d+-cp3\d+-manylinux_2_\d+_\w+", tag_of("-lm"))
    assert re.fullmatch(r"cp3\d+-cp3\d+-linux_\w+", tag_of("-lm", "-lstdc++"))


@pytest.mark.skipif(int(os.environ.get("GLGEMM_PYTHON_EXAMPLES", "60")) < 60, reason="compiles the library for one or two minutes")
def test_what_an_sdist_builds(tmp_path, monkeypatch):
    """Without a network, where the system allows to take it away: a wheel that tells nothing of the machine, and runs."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import python_package

    with tarfile.open(tmp_path / python_package.build_sdist(str(tmp_path))) as archive:
        archive.extractall(tmp_path)
    code = "import python_package; print(python_package.build_wheel('..'))"
    command = [sys.executable, "-c", code]
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0:
        command = ["unshare", "-rn", *command]
    folder = tmp_path / python_package.name()
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": "tools"}, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    wheel = tmp_path / done.stdout.split()[-1]
    assert "-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    module = next((tmp_path / "installed" / "glgemm").glob("_core*"))
    for private in (str(tmp_path), str(pathlib.Path.home()), "glgemm-0"):  # the last one: of folders of the source and the build
        assert private.encode() + b"/" not in module.read_bytes()
    code = "import glgemm, numpy as np; print(glgemm.matmul(np.eye(2, dtype='f4'), np.ones((2, 1), 'f4')).sum())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "2.0\n", done.stderr


def test_hints(tmp_path):
    pytest.importorskip("mypy")
    right = "import glgemm, numpy as np\nx: glgemm.Array = glgemm.Engine().asarray(np.ones(3))\ny: int = x.ndim\nz: glgemm.Array = x @ x\n"
    for code, status, checked in ((right, 0, "code.py"), (right + "w: str = x.ndim\n", 1, "code.py"), (right, 0, str(FOLDER))):
        (tmp_path / "code.py").write_text(code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "--follow-imports=silent", "--strict", checked],
            cwd=tmp_path,
            env={**os.environ, "MYPYPATH": str(FOLDER.parent)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stdout + done.stderr


def test_stubs_are_those_of_the_extension():
    text = (FOLDER / "_core.pyi").read_text(encoding="utf-8")
    from glgemm import _core

    stubbed = set(re.findall(r"^(?:class |def )?([^\W_]\w*)[:(]", text, re.M))
    assert stubbed == {name for name in vars(_core) if not name.startswith("_")}
    for kind in (_core.Array, _core.Job, _core.Report, _core.Stopwatch, _core.Work):
        members = re.search(rf"^class {kind.__name__}:\n(.*?)\n\n", text, re.M | re.S)[1]
        stubbed = set(re.findall(r"def (\w+)", members))
        assert {name for name in vars(kind) if not name.startswith("_")} == {name for name in stubbed if not name.startswith("_")}
