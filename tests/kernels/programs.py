"""Programs of every kernel and every type that there are: their sources, as `glgemm inspect` prints them."""
import functools
import json
import os
import pathlib
import subprocess
import zlib

# A kernel gets the first product of each list that it takes: gemv wants few columns, outer a short k. Lines of the first begin at
# multiples of 16 bytes.
PRODUCTS = (("64,64,64", "64,1,64", "64,64,4"), ("61,59,63", "61,1,63", "61,59,3"))


@functools.cache
def tables(glgemm):
    return json.loads(subprocess.run([glgemm, "inspect", "--tables"], check=True, capture_output=True, text=True).stdout)


def type_names(glgemm, wanted=lambda type_: True):
    return [each["name"] for each in tables(glgemm)["types"] if wanted(each)]


def values_of_panels(parameter):
    return parameter["legal"] if parameter["name"] == "panels" else []


def kernels(glgemm, values=values_of_panels):
    """Each kernel of the table with its defaults, and with each of the values that `values` gives for one of its parameters."""
    return [name for each in tables(glgemm)["kernels"] for name in [each["name"]] + [
        f"{each['name']}:{parameter['name']}={value}" for parameter in each["parameters"] for value in values(parameter)]]


def programs(glgemm, kernel, type_, *options, device="nvidia-ampere"):
    """The sources of what multiplies two products on such a device, by the programs' names. Without any: why the last was refused."""
    found, refused = {}, ""
    for op, shapes in zip("nt", PRODUCTS):
        for shape in shapes:
            command = [glgemm, "inspect", "--as", device, "--json", "--source", "--steps", "0", "--kernel", kernel, "--type", type_,
                       "--shape", shape, "--op-a", op, "--op-b", op, *options]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                found.update((stage["program"], stage["source"]) for stage in json.loads(done.stdout)["stages"])
                break
            refused = done.stderr.strip()
    return found, refused


def is_precise(source):
    return "\n#define PRECISION 0\n" not in source.partition("\n#line ")[0]


def with_macros(source, **macros):
    """The source with other values of macros that it sets."""
    for name, value in macros.items():
        before, found, rest = source.partition(f"\n#define {name} ")
        if found:
            source = f"{before}{found}{value}\n{rest.partition(chr(10))[2]}"
    return source


def in_part(sources):
    """Those in the part I/N that GLGEMM_TEST_PART names, as if by chance; all without it."""
    index, of = map(int, os.environ.get("GLGEMM_TEST_PART", "0/1").split("/"))
    return {name: source for name, source in sources.items() if zlib.crc32(name.encode()) % of == index}


def write(folder, sources):
    """Writes a file for each of the sources; returns the files by the sources' names."""
    files = {name: pathlib.Path(folder, f"program{i}.comp") for i, name in enumerate(sources)}
    for name, path in files.items():
        path.write_text(sources[name])
    return files
