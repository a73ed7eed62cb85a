"""The most of a GPU's peak rate of f32 that a program's machine code allows, by what makers publish of their GPUs.

A unit (a multiprocessor, compute unit, core or subslice) has so many lanes, each of which multiplies and adds once a clock. A
program cannot reach that peak where its other instructions take the place of multiply-adds, or where its shared memory is read
more slowly than the lanes use what is read. Time that is lost in waiting is not seen.
"""
import dataclasses

# Where the rates are from. The CUDA guide's table of "results per clock cycle per multiprocessor" has the multiply-adds, and its chapters
# on compute capabilities the banks of shared memory. P. Turner's metal-benchmarks (github.com/philipturner/metal-benchmarks, "On-Chip
# Memory") has lanes and bytes of shared memory for each clock of all makers but Qualcomm, and says of Apple's shared memory that it is
# not known. AMD's pages on the performance model of RDNA 3.5 (rocm.docs.amd.com, ROCm Compute Profiler, "Workgroup processor") give 128
# multiply-adds for each clock and compute unit, of which half need instructions that are issued in pairs or subgroups of 64.
# CDNA's units have the four times 16 lanes of GCN's. Intel's occupancy calculator (oneAPI samples) has 16 execution units for each subslice of
# Xe-LP and Xe-HPG, of 8 lanes each.
CUDA = "CUDA C++ Programming Guide: multiply-adds, 32 banks of 4 bytes"
GCN = "AMD, Graphics Core Next whitepaper, 2012; metal-benchmarks"
RDNA2 = "AMD, RDNA whitepaper, 2019; metal-benchmarks"
RDNA3 = "AMD, ROCm Compute Profiler, RDNA 3.5: 128 multiply-adds, if all are issued in pairs or for 64; metal-benchmarks: shared memory"
RDNA4 = RDNA3 + "; none found of RDNA 4, taken as RDNA 3"
GEN9 = "Intel, The Compute Architecture of Intel Processor Graphics Gen9, 2015; metal-benchmarks"
XE = "Intel, oneAPI occupancy calculator: 16 units of 8 lanes"
APPLE = "P. Turner, metal-benchmarks, measured"
ADRENO = "no source: one instruction a clock is assumed"
NO_SHARED = "; no source for the rate of shared memory, which is left out"


@dataclasses.dataclass(frozen=True)
class Gpu:
    name: str
    device_class: str  # of glgemm's: all of them have the same units
    lanes: int  # of a unit
    shared_bytes: int  # that a unit reads or writes a clock; 0 where it is not published
    takes: str  # what takes the place of a multiply-add: every instruction that is "issued", or those for the "vector" units
    source: str
    clocks: int = 1  # that a multiply-add keeps its lanes busy for while one instruction a clock is issued


GPUS = {
    "nvidia-turing": Gpu("GeForce RTX 2080", "nvidia-turing", 64, 128, "issued", CUDA, 2),
    "nvidia-ampere": Gpu("GeForce RTX 3070", "nvidia-ampere", 128, 128, "issued", CUDA),
    "nvidia-ada": Gpu("GeForce RTX 4090", "nvidia-ada", 128, 128, "issued", CUDA),
    "nvidia-blackwell": Gpu("GeForce RTX 5090", "nvidia-blackwell", 128, 128, "issued", CUDA),
    "amd-gcn4": Gpu("Radeon RX 580", "amd-gcn", 64, 128, "vector", GCN),
    "amd-vega": Gpu("Radeon RX Vega", "amd-vega", 64, 128, "vector", GCN),
    "amd-rdna2": Gpu("Radeon RX 6800", "amd-rdna2", 64, 128, "vector", RDNA2),
    "amd-rdna3": Gpu("Radeon RX 7900 XTX", "amd-rdna3", 128, 128, "vector", RDNA3),
    "amd-rdna4": Gpu("Radeon RX 9070 XT", "amd-rdna4", 128, 128, "vector", RDNA4),
    "apple-m1": Gpu("Apple M1", "apple-m1", 128, 0, "issued", APPLE + NO_SHARED),
    "adreno-660": Gpu("Adreno 660", "adreno-6xx", 0, 0, "issued", ADRENO + NO_SHARED),
    "adreno-740": Gpu("Adreno 740", "adreno-7xx", 0, 0, "issued", ADRENO + NO_SHARED),
    "intel-skylake": Gpu("HD Graphics 530", "intel-gen9", 64, 64, "vector", GEN9),
    "intel-tigerlake": Gpu("Iris Xe", "intel-gen12", 128, 128, "vector", XE + "; no source for shared memory, taken as two subslices of Gen9"),
    "intel-dg2": Gpu("Arc A770M", "intel-xe-hpg", 128, 0, "vector", XE + NO_SHARED),
}
# ggml's Vulkan mul_mm for f32, blocks of 128 x 128 x 16: the share of multiply-adds in its main loop, by the same compilers.
GGML = {"nvidia-ampere": 0.873, "amd-rdna3": 0.831}


def bound(device, loop):
    """{"share", "limit"}: of the peak rate, and what limits it; None for a GPU that the table does not have.

    `loop` is what machine_code.describe counts.
    """
    gpu = GPUS.get(device)
    if not gpu:
        return None
    limits = {"instructions": min(1.0, gpu.clocks * loop[gpu.takes + "_share"])}
    moved = loop["shared_bytes"] + loop["shared_store_bytes"]
    if gpu.shared_bytes and moved:
        limits["shared memory"] = min(1.0, gpu.shared_bytes / (gpu.lanes * moved))
    limit = min(limits, key=limits.get)
    return {"share": limits[limit], "limit": limit}


def kernel_of(row):
    """The kernel in short: "blocked 128 x 128 x 8, 8 x 8"."""
    family, _, rest = row["kernel"].partition(":")
    parameters = dict(part.split("=") for part in rest.split(","))
    sizes = [" x ".join(parameters[name] for name in names if name in parameters) for names in
             (("block_m", "block_n", "block_k"), ("tile_m", "tile_n"))]
    return f"{family} {', '.join(size for size in sizes if size)}"


def markdown(head, rows):
    """A table below its head, "| a | b |"."""
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *(f"| {' | '.join(map(str, cells))} |" for cells in rows)])


def table_of_code(rows):
    """What the machine code is, as Markdown."""
    def loads(loop, memory):
        count = loop[memory + "_loads"]
        return f"{count:.3f} of {loop[memory + '_bytes'] / count:.0f} bytes" if count else "-"

    return markdown("| device of the lab | kernel | multiply-adds | waits after | spills, local accesses | registers | w | shared loads | global loads |", [
        [row["device"], kernel_of(row), f"{100 * loop['share']:.1f} %", "-" if loop["overlap"] is None else f"{loop['overlap']:.2f}",
         f"{row.get('spills', '-')}, {row['local_accesses']}", row.get("registers", "-"), row.get("subgroup_width", "-"),
         loads(loop, "shared"), loads(loop, "global")] for row in rows if (loop := row.get("loop"))])


def table_of_bounds(rows):
    """What the machine code allows, as Markdown."""
    return markdown("| GPU | multiply-adds | ggml's | bytes of shared memory, read + written | occupancy | bound | by | rates from |", [
        [gpu.name, f"{100 * loop['share']:.1f} %", f"{100 * GGML[row['device']]:.1f} %" if row["device"] in GGML else "-",
         f"{loop['shared_bytes']:.2f} + {loop['shared_store_bytes']:.2f}", row.get("occupancy", "-"), f"{100 * row['bound']['share']:.0f} %",
         row["bound"]["limit"], gpu.source] for row in rows if (gpu := GPUS.get(row["device"])) and (loop := row.get("loop"))])


def table_of_boards(rows):
    """What the compilers for small boards say, as Markdown."""
    return markdown("| device of the lab | product | kernel | spills, fills | registers | threads | instructions |", [
        [row["device"], row["product"], kernel_of(row), f"{row.get('spills', '-')}, {row.get('fills', '-')}",
         *(row.get(key, "-") for key in ("registers", "occupancy", "instructions"))] for row in rows])
