"""What glslangValidator makes of shaders: modules of SPIR-V, instruction by instruction."""
import array
import subprocess
import sys


def module(validator, path):
    """The shader as a module: words. Ends the script where the validator refuses it."""
    binary = path.with_suffix(".spv")
    command = [validator, "-G", "--auto-map-locations", "-S", "comp", "-o", str(binary), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    words = array.array("I", binary.read_bytes())
    binary.unlink()
    return words


def instructions(words):
    """The number of each instruction, and its operands as words."""
    at = 5
    while at < len(words):
        length = words[at] >> 16
        yield words[at] & 0xFFFF, words[at + 1:at + length]
        at += length
