"""Makes Python packages of glgemm: what pip calls when it installs a clone (PEP 517), from the standard library and CMake alone.

  pip install .              builds and installs the module
  pip install --editable .   the module's Python files are those of the clone; the extension is built once
  pip wheel .                the module as a wheel, for this version of Python, and for any Linux that is no older than its tag says

The build's folder is a temporary one, so that the clone stays as it is; GLGEMM_PYTHON_BUILD names one that is kept, and makes the
next build short. GLGEMM_CMAKE_OPTIONS has further options for CMake, such as -DCMAKE_BUILD_TYPE=Debug. CMake, a C++ compiler, glad 2, pybind11 and what else tools/setup
installs must be here: nothing is downloaded.
"""
import base64
import contextlib
import gzip
import hashlib
import io
import os
import pathlib
import re
import shlex
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "python" / "glgemm"


def version():
    return re.search(r"project\(glgemm VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def name():
    return f"glgemm-{version()}"


def metadata():
    """METADATA, from pyproject.toml and the page that it names. Its lines are few enough to be read without a library."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    value = lambda key: re.search(rf'^{key} = "(.*)"$', text, re.M)[1]
    lines = ["Metadata-Version: 2.1", "Name: glgemm", f"Version: {version()}", f"Summary: {value('description')}"]
    lines += [f"Requires-Python: {value('requires-python')}", "Requires-Dist: numpy"]
    extras = re.search(r"^\[project\.optional-dependencies\]\n(.*?)\n\n", text, re.M | re.S)[1]
    for extra, package in re.findall(r'^(\w+) = \["(.*)"\]$', extras, re.M):
        lines += [f"Provides-Extra: {extra}", f'Requires-Dist: {package} ; extra == "{extra}"']
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / value("readme")).read_text(encoding="utf-8")]
    return "\n".join(lines)


def dist_info():
    """What a wheel tells of glgemm: files by their names."""
    return {"METADATA": metadata().encode(), "LICENSE": (ROOT / "LICENSE").read_bytes()}


def tag(file):
    """For which Python and which systems a wheel with this file is. Where it needs nothing but a C library, and libgcc, which every Linux
    has, that is manylinux with the version of the C library (PEP 600); else Linux as it is here."""
    python, platform = f"cp{sys.version_info.major}{sys.version_info.minor}", re.sub(r"[-.]", "_", sysconfig.get_platform())
    told = "".join(subprocess.run(["objdump", option, str(file)], capture_output=True, text=True).stdout for option in ("-p", "-T"))
    libraries = re.findall(r"^ *NEEDED +(\S+)", told, re.M)
    versions = [int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", told)]
    if versions and all(re.match(r"(lib(c|m|gcc_s|dl|pthread|rt)|ld-linux[-\w]*)\.so\.", library) for library in libraries):
        platform = platform.replace("linux", f"manylinux_2_{max(versions)}", 1)
    return f"{python}-{python}-{platform}"


@contextlib.contextmanager
def build_folder():
    kept = os.environ.get("GLGEMM_PYTHON_BUILD")
    if kept:
        yield pathlib.Path(kept).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="glgemm-") as folder:
        yield pathlib.Path(folder)


def build(folder):
    """Builds the extension; its path."""
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DGLGEMM_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}", "-DBUILD_SHARED_LIBS=OFF"]
    options += ["-DCMAKE_UNITY_BUILD=ON", "-DGLGEMM_PORTABLE=ON"]
    options += [f"-DGLGEMM_BUILD_{part}=OFF" for part in ("TOOLS", "TESTS", "BLAS", "DISTRIBUTED", "PEERS")]
    # Nothing of this machine's folders in what is built, and no names of what is private.
    options += [f"-DCMAKE_CXX_FLAGS=-ffile-prefix-map={ROOT}/= -ffile-prefix-map={folder}/=", "-DCMAKE_MODULE_LINKER_FLAGS=-s"]
    options += shlex.split(os.environ.get("GLGEMM_CMAKE_OPTIONS", ""))
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), *options], check=True)
    targets = subprocess.run(["cmake", "--build", str(folder), "--target", "help"], check=True, capture_output=True, text=True).stdout
    if "glgemm_python" not in targets:
        raise SystemExit("glgemm: CMake has left out the Python module; its lines above say what is missing")
    subprocess.run(["cmake", "--build", str(folder), "--parallel", str(os.cpu_count() or 1), "--target", "glgemm_python"], check=True)
    module = sorted((folder / "python" / "glgemm").glob(f"_core*{sysconfig.get_config_var('EXT_SUFFIX')}"))
    return module[-1]


class Wheel:
    """A wheel that is written file by file."""

    def __init__(self, folder, tag):
        self.tag, self.file_name = tag, f"{name()}-{tag}.whl"
        self.archive = zipfile.ZipFile(pathlib.Path(folder) / self.file_name, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, path, data, executable=False):
        entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.archive.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{path},sha256={digest},{len(data)}")

    def finish(self):
        info = f"{name()}.dist-info"
        about = f"Wheel-Version: 1.0\nGenerator: glgemm\nRoot-Is-Purelib: false\nTag: {self.tag}\n"
        for file, data in {**dist_info(), "WHEEL": about.encode()}.items():
            self.add(f"{info}/{file}", data)
        self.record.append(f"{info}/RECORD,,")
        self.archive.writestr(f"{info}/RECORD", "\n".join(self.record) + "\n")
        self.archive.close()
        return self.file_name


def package_files():
    return sorted(path for path in PACKAGE.iterdir() if path.suffix in (".py", ".pyi") or path.name == "py.typed")


# ---- What pip calls


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Without it pip would build a wheel to read the same there, and then another one."""
    folder = pathlib.Path(metadata_directory) / f"{name()}.dist-info"
    folder.mkdir()
    for file, data in dist_info().items():
        (folder / file).write_bytes(data)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def wheel_of_what_is_built(wheel_directory):
    """A wheel that holds the extension, and no Python files."""
    with build_folder() as folder:
        module = build(folder)
        wheel = Wheel(wheel_directory, tag(module))
        wheel.add(f"glgemm/{module.name}", module.read_bytes(), executable=True)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel = wheel_of_what_is_built(wheel_directory)
    for path in package_files():
        wheel.add(f"glgemm/{path.name}", path.read_bytes())
    return wheel.finish()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package is a file that looks for the Python files in the clone; what is built lies beside it."""
    wheel = wheel_of_what_is_built(wheel_directory)
    source = PACKAGE / "__init__.py"
    code = f"__path__.append({str(PACKAGE)!r})\n__file__ = {str(source)!r}\nexec(compile(open(__file__, encoding='utf-8').read(), __file__, 'exec'))\n"
    wheel.add("glgemm/__init__.py", code.encode())
    wheel.add("glgemm/py.typed", b"")
    return wheel.finish()


def build_sdist(sdist_directory, config_settings=None):
    """All files that git knows; pip builds a wheel of it as of a clone, without a network."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True).stdout.decode()
    file_name = f"{name()}.tar.gz"
    with gzip.GzipFile(pathlib.Path(sdist_directory) / file_name, "wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in filter(None, listed.split("\0")):
            archive.add(ROOT / path, f"{name()}/{path}", recursive=False)
        text = metadata().encode()
        entry = tarfile.TarInfo(f"{name()}/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return file_name
