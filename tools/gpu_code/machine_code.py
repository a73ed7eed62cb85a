"""Reads the machine code that Mesa's drivers print of the programs that they compile.

Each maker's driver prints another text. `read` turns it into programs: instructions of a few kinds that all makers have, and the
loops among them. `describe` counts in the main loop what decides how fast a matrix product can run.
"""
import collections
import dataclasses
import re

# The kinds of instructions.
MULTIPLY_ADD, MOVE, BRANCH, BARRIER, WAIT, OTHER = "multiply-add", "move", "branch", "barrier", "wait", "other"
SHARED_LOAD, SHARED_STORE = "shared load", "shared store"
GLOBAL_LOAD, GLOBAL_STORE = "global load", "global store"
CONSTANT_LOAD = "constant load"
SCALAR = "scalar"  # done once for all invocations, by a unit of its own
LOCAL_LOAD, LOCAL_STORE = "local load", "local store"  # memory of the invocation's own: spilled registers, arrays


@dataclasses.dataclass
class Instruction:
    kind: str
    text: str
    products: int = 0  # multiply-adds that each invocation gets done
    lanes: int = 0  # how many invocations at a time, where the instruction says so
    bytes: int = 0  # that a load or store moves for each invocation
    issues: object = None  # the scoreboard on which what it loads is waited for
    waits: frozenset = frozenset()  # scoreboards on which it waits
    waits_all: bool = False
    keeps: int = None  # of the loads under way it waits for all but so many of the newest ones


@dataclasses.dataclass
class Program:
    instructions: list
    loops: list  # each a list of indices of instructions
    width: int = 0  # invocations that run in lockstep; 0 where the listing does not say


LOADS = (SHARED_LOAD, GLOBAL_LOAD, LOCAL_LOAD, CONSTANT_LOAD)


def _kind_of(text, kinds):
    """The kind of the first pattern with which the text begins."""
    return next((kind for pattern, kind in kinds.items() if re.match(pattern, text)), OTHER)


class _Builder:
    """Collects instructions, and turns branches to labels that came before into loops."""

    def __init__(self):
        self.instructions, self.labels, self.loops = [], {}, []

    def label(self, name):
        self.labels[name] = len(self.instructions)

    def lines(self, section, label):
        """The lines that are no labels; `label` is the pattern of those that are."""
        for line in section:
            if found := re.match(label, line):
                self.label(found[1])
            else:
                yield line

    def add(self, instruction, target=None):
        self.instructions.append(instruction)
        if target in self.labels:
            self.loops.append(range(self.labels[target], len(self.instructions)))

    def program(self, width=0):
        return Program(self.instructions, [list(loop) for loop in self.loops], width)


def _sections(lines, begins, ends):
    """The runs of lines after one that `begins` fits, up to one that `ends` fits; each with its first line."""
    section = None
    for line in lines:
        if re.match(begins, line):
            if section:
                yield section
            section = [line]
        elif section and ends and re.match(ends, line):
            yield section
            section = None
        elif section:
            section.append(line)
    if section:
        yield section


# ---- AMD: radeonsi with AMD_DEBUG=cs,asm

_AMD_MULTIPLY_ADD = re.compile(r"v_(dual_|pk_)?(fma|fmac|mac|mad|fmamk|fmaak|madmk|madak)(_mix|_mixlo|_mixhi)?_(legacy_)?f(16|32|64)")
_AMD_BYTES = [(r"_b128|dwordx4|xyzw", 16), (r"_b96|dwordx3|xyz$", 12), (r"_b64|dwordx2|xy$", 8), (r"_b16|short|u16|i16", 2),
              (r"_b8|byte|u8|i8", 1)]


_AMD_KINDS = {
    _AMD_MULTIPLY_ADD: MULTIPLY_ADD,
    r"ds_\S*(load|read)": SHARED_LOAD, "ds_": SHARED_STORE,
    r"(?=scratch_|.* scratch)\S*_load": LOCAL_LOAD, "scratch_|.* scratch": LOCAL_STORE,
    "t?buffer_load|global_load|flat_load|image_": GLOBAL_LOAD, "t?buffer_store|global_store|flat_store": GLOBAL_STORE,
    "s_(buffer_)?load": CONSTANT_LOAD,
    r"\S*barrier": BARRIER,
    "s_(wait|nop|delay|clause|set_inst)": WAIT,
    r"\S*branch": BRANCH,
    "s_": SCALAR,
    "v_(dual_)?mov": MOVE,
}


def _amd_instruction(opcode, text):
    result = Instruction(_kind_of(text, _AMD_KINDS), text)
    result.bytes = next((size for pattern, size in _AMD_BYTES if re.search(pattern, opcode)), 4)
    if result.kind == MULTIPLY_ADD:
        # A dual instruction does the same thing twice, or two things.
        result.products = len(_AMD_MULTIPLY_ADD.findall(text)) if opcode.startswith("v_dual") else 2 if opcode.startswith("v_pk") else 1
    elif result.kind in (SHARED_LOAD, SHARED_STORE) and re.search(r"(load|read|store|write)_?2", opcode):
        result.bytes *= 2
    elif result.kind in (GLOBAL_LOAD, LOCAL_LOAD):
        result.issues = "vm"
    elif result.kind == WAIT:
        keeps = re.search(r"vmcnt\((\d+)\)", text) or re.match(r"s_wait_loadcnt(?:_dscnt)? (0x[0-9a-f]+|\d+)", text)
        if keeps:
            result.keeps = int(keeps[1], 0) >> (8 if opcode.startswith("s_wait_loadcnt_dscnt") else 0)
    return result


def _read_amd(lines):
    # The compiler's own text stands in for a disassembly where LLVM has none of the chip: results, " = ", the instruction.
    for section in _sections(lines, r"Shader main disassembly|disasm:", r"\*\*\* SHADER|(Pixel|Vertex) Shader|@@"):
        builder = _Builder()
        for line in builder.lines(section[1:], r"\s*(BB\d+):?\s*$"):
            if found := re.match(r"\t\s*(?:(?:(?:lin_)?[sv]\d+b?: [^=]*) = )?([a-z]\w+)", line):
                target = re.search(r"branch\w* (?:block:)?(BB\d+)", line)
                builder.add(_amd_instruction(found[1], line[line.index(found[1]):]), target and target[1])
        yield builder.program()


# ---- NVIDIA: NVK with NAK_DEBUG=print. Blocks, each with its successors; the last text before the count has the waits.

_NVIDIA_KINDS = {
    "[fd]fma|hfma2": MULTIPLY_ADD,
    r"ld\.shared": SHARED_LOAD, r"st\.shared": SHARED_STORE,
    r"ld\.global|suld|tld|tex|txf": GLOBAL_LOAD, r"st\.global": GLOBAL_STORE,
    r"ld\.local": LOCAL_LOAD, r"st\.local": LOCAL_STORE,
    "ldc": CONSTANT_LOAD,
    r"bar(\.|$)": BARRIER,
    r"(bra|bsync|bssy|warpsync|exit|brx|break)(\.|$)": BRANCH,
    "nop|depbar": WAIT,
    "mov|copy|r2ur": MOVE,
}


def _nvidia_instruction(text):
    operation = re.sub(r"^@\S+", "", text).strip()
    operation = re.sub(r"^[^=/]*? = ", "", operation) if re.match(r"[^/]*? = ", operation) else operation
    opcode = operation.split()[0]
    width = re.search(r"\.b(\d+)", opcode)
    made = re.search(r" wr:(\d)", text)
    waited = re.search(r" wt=([01]+)", text)
    kind = _kind_of(opcode, _NVIDIA_KINDS)
    return Instruction(kind, text, products=(2 if opcode.startswith("hfma2") else 1) if kind == MULTIPLY_ADD else 0,
                       bytes=16 if re.match("suld|tld|tex|txf", opcode) else int(width[1]) // 8 if width else 4,
                       issues=int(made[1]) if made else None,
                       waits=frozenset(i for i, bit in enumerate(reversed(waited[1])) if bit == "1") if waited else frozenset())


def _read_nvidia(lines):
    for section in _sections(lines, r"NAK IR after calc_instr_deps", r"Instruction count"):
        blocks, successors, current = {}, {}, None
        for line in section[1:]:
            begin = re.match(r"block(?:\.u)? (\d+) ", line)
            end = re.match(r"\} -> \[(.*)\]", line)
            if begin:
                current = int(begin[1])
                blocks[current] = []
            elif end and current is not None:
                successors[current] = [int(one) for one in end[1].split(",") if one.strip()]
                current = None
            elif current is not None and line.strip():
                blocks[current].append(_nvidia_instruction(line))
        yield _from_blocks(blocks, successors)


def _from_blocks(blocks, successors):
    """A program of blocks in order: a block that a later one leads back to begins a loop of all that lead there without it."""
    predecessors = collections.defaultdict(list)
    for block, following in successors.items():
        for one in following:
            predecessors[one].append(block)
    instructions, place = [], {}
    for block in sorted(blocks):
        place[block] = range(len(instructions), len(instructions) + len(blocks[block]))
        instructions += blocks[block]
    loops = []
    for block, following in successors.items():
        for head in following:
            if head > block:
                continue
            body, found = {head}, [block]
            while found:
                one = found.pop()
                if one not in body:
                    body.add(one)
                    found += predecessors[one]
            loops.append([i for one in sorted(body) for i in place[one]])
    return Program(instructions, loops)


# ---- Adreno: freedreno with IR3_SHADER_DEBUG=cs,disasm

_IR3_BYTES = {"32": 4, "16": 2, "8": 1}


_ADRENO_KINDS = {
    r"mad\.f(32|16)": MULTIPLY_ADD,
    r"ldl[wv]?\b": SHARED_LOAD, r"stlw?\b": SHARED_STORE,
    r"ldp\b": LOCAL_LOAD, r"stp\b": LOCAL_STORE,
    r"isam|ldib|ldg|sam\b|resinfo": GLOBAL_LOAD, "stib|stg": GLOBAL_STORE,
    r"ldc\b": CONSTANT_LOAD,
    r"bar\b": BARRIER,
    "br|jump|getone|pred|end|shps|shpe": BRANCH,
    "nop|fence|sleep": WAIT,
    "mov|cov|swz": MOVE,
}


def _adreno_instruction(flags, opcode, text):
    kind = _kind_of(opcode, _ADRENO_KINDS)
    size = next((_IR3_BYTES[one] for one in re.findall(r"\.[usf](32|16|8)\b", opcode)), 4)
    # How many components: the last operand of loads and stores; for buffers a part of the opcode.
    last = re.search(r", (\d+)\s*$", text)
    components = int(last[1]) if last else 1
    if kind == GLOBAL_LOAD:
        given = re.search(r"\.\dd\.\w+\.(\d)\.", opcode)
        written = re.search(r"\(([xyzw]+)\)", text)
        components = 4 if opcode.startswith("isam.v") else int(given[1]) if given else len(written[1]) if written else components
    return Instruction(kind, text, products=int(kind == MULTIPLY_ADD), bytes=size * components, waits_all="(sy)" in flags,
                       issues="sy" if kind in (LOCAL_LOAD, GLOBAL_LOAD, CONSTANT_LOAD) else None)


def _read_adreno(lines):
    lines = (line.removeprefix("MESA: info: ") for line in lines)
    for section in _sections(lines, r"Native code for unnamed ", r"; \w+ prog|@@"):
        if " CL shader" not in section[0]:
            continue
        builder = _Builder()
        for line in builder.lines(section[1:], r"(l\d+):"):
            found = re.match(r"((?:\([a-z0-9]+\))*)\s*([a-z][\w.]*)", line)
            if not found:
                continue
            repeated = re.search(r"\(rpt(\d)\)", found[1])
            idle = re.search(r"\(nop(\d)\)", found[1])
            for _ in range(int(idle[1]) if idle else 0):
                builder.add(Instruction(WAIT, "(nop)"))
            target = re.match(r"(?:br\w*|jump)\b.*#(l\d+)", found[2] + line[found.end():])
            instruction = _adreno_instruction(*found.groups(), line)
            for _ in range(1 + int(repeated[1]) if repeated else 1):
                builder.add(instruction, target and target[1])
        yield builder.program()


# ---- Apple: asahi with AGX_MESA_DEBUG=shaders. Addresses, bytes, instructions; jumps are relative.

_APPLE_KINDS = {
    "[fh]fma|fma": MULTIPLY_ADD,
    "lload$": SHARED_LOAD, "lstore$": SHARED_STORE,
    "load$|texture_load": GLOBAL_LOAD, "store$": GLOBAL_STORE,
    "stack_load$": LOCAL_LOAD, "stack_store$": LOCAL_STORE,
    "barrier$": BARRIER,
    "(wait|nop)$": WAIT,
    "jmp|while|if|else|pop|push|break|stop|trap": BRANCH,
    "mov": MOVE,
}


def _apple_instruction(opcode, operands, text):
    kind = _kind_of(opcode, _APPLE_KINDS)
    # The registers of a load or store, as in "r0_r1_r2", come first; its slot last.
    registers = operands.split(",")[0].count("_") + 1
    size = 2 if re.search(r"\bi16\b", operands) else 1 if re.search(r"\bi8\b", operands) else 4
    slot = re.search(r", ([ab])\s*$", operands)
    return Instruction(kind, text, products=int(kind == MULTIPLY_ADD), bytes=size * registers,
                       issues=slot[1] if slot and kind in (GLOBAL_LOAD, LOCAL_LOAD) else None,
                       waits=frozenset(re.findall(r"\b([ab])\b", operands)) if kind == WAIT else frozenset())


def _read_apple(lines):
    for section in _sections(lines, r"\s*0: [0-9a-f]+ ", r"(?!\s*[0-9a-f]+: [0-9a-f]+ )"):
        builder = _Builder()
        for line in section:
            address, opcode, operands = re.match(r"\s*([0-9a-f]+): [0-9a-f]+\s+(\w+)(.*)", line).groups()
            address = int(address, 16)
            builder.label(address)
            jump = re.match(r"\s*(-\d+)", operands) if opcode.startswith("jmp") else None
            builder.add(_apple_instruction(opcode, operands, line), jump and address + int(jump[1]))
        yield builder.program()


# ---- Intel: iris and crocus with INTEL_DEBUG=cs. Two forms: "mad (8) r1:f ..." and, of older generations, "mad(8) g1<1>F ...",
# where the line after a message tells of it.

def _intel_memory(told):
    """What a message reads or writes, by what the disassembler tells of it: kind, bytes for each invocation."""
    store = bool(re.search(r"store|write", told))
    size = re.search(r"\.d(\d+)(?:x(\d+))?(t?)", told)
    mask = re.search(r"untyped_(?:read|write):([xyzw]+)", told)
    hidden = re.search(r"Mask = (0x[0-9a-f])", told)
    if size:
        moved = int(size[1]) // 8 * (int(size[2]) if size[2] and not size[3] else 1)
    elif mask:
        moved = 4 * len(mask[1])
    else:
        moved = 4 * (4 - bin(int(hidden[1], 16)).count("1")) if hidden else 4
    surface = re.search(r"(?:bti\s*[(\[]?|Surface = )(\d+)", told)
    surface = int(surface[1]) if surface else None
    if "slm" in told or surface == 254:
        return (SHARED_STORE if store else SHARED_LOAD), moved
    if ".ss[" in told or surface in (253, 255) or "DC OWORD block" in told:
        return (LOCAL_STORE if store else LOCAL_LOAD), moved
    if re.search(r"sample|\bld\b|\bld_", told):
        return GLOBAL_LOAD, 16
    if re.search(r"oword|const MsgDesc|x\d+t\.", told):  # a block for all invocations: uniforms
        return CONSTANT_LOAD, 0
    return (GLOBAL_STORE if store else GLOBAL_LOAD), moved


_INTEL_KINDS = {
    r"mad\b(?=.*(:(f|hf|df)\b|>(F|HF|DF)\b))": MULTIPLY_ADD,
    r"sync\S*bar": BARRIER,
    r"(sync|wait|nop)\b": WAIT,
    r"(if|else|endif|while|break|halt|do|jmpi|cont)\b": BRANCH,
    r"mov\b": MOVE,
}


def _intel_instruction(opcode, line, told):
    base = opcode.split(".")[0]
    operation = line[line.index(base):]
    result = Instruction(_kind_of(operation, _INTEL_KINDS), line, lanes=int(re.search(r"\((\d+)\)", operation)[1]),
                         waits=frozenset(re.findall(r"\$(\d+)\.dst", line)), waits_all=base == "sync" and "allwr" in opcode)
    result.products = int(result.kind == MULTIPLY_ADD)
    if not base.startswith("send"):
        return result
    if "barrier" in told:
        result.kind = BARRIER
    elif not re.search(r"fence|EOT|thread_spawner|open \(", told + line):
        result.kind, result.bytes = _intel_memory(told + (" slm" if ".slm" in opcode else ""))
        token, first = re.search(r"[{,]\$(\d+)[,}]", line), re.search(r"\)\s+[rg](\d+)", line)
        if token:
            result.issues = token[1]
        elif first and result.kind in LOADS:
            count = re.search(r"rd:(\d+)|rlen (\d+)", told)
            result.issues = frozenset(int(first[1]) + i for i in range(int(count[1] or count[2]) if count else 1))
    return result


def _wait_by_registers(program):
    """Where no token tells, an instruction waits for the loads of the registers that it names."""
    for instruction in program.instructions:
        instruction.waits = instruction.waits | frozenset(
            int(one) for one in re.findall(r"\b[rg](\d+)\b", instruction.text.split("//")[0]))
    return program


def _read_intel(lines):
    lines = list(lines)
    for section in _sections(lines, r"Native code for .*compute", r"\s+(CS )?SIMD\d+ .*(inst|inefficient)|@@"):
        builder = _Builder()
        width = next((int(found[1]) for found in (re.match(r"SIMD(\d+) shader", line) for line in section) if found), 0)
        for i, line in enumerate(section):
            label = re.match(r"\s*(L\d+|LABEL\d+):", line)
            if label:
                builder.label(label[1])
                continue
            found = re.match(r"(?:\([^)]*\))?\s*([a-z][a-z0-9_.]+) ?\(\d+\)(?:\s|$)", line)
            if not found:
                continue
            told = line.split("//")[-1]
            if "//" not in line and i + 1 < len(section) and "MsgDesc" in section[i + 1]:
                told = section[i + 1]
            target = re.search(r"\bwhile ?\(\d+\)\s+(?:JIP:\s*)?(L\w+)", line)
            builder.add(_intel_instruction(found[1], line, told), target and target[1])
        program = builder.program(width)
        yield program if any("{$" in line or ",$" in line for line in section) else _wait_by_registers(program)


_READERS = {"amd": _read_amd, "nvidia": _read_nvidia, "adreno": _read_adreno, "apple": _read_apple, "intel": _read_intel}
MAKERS = tuple(_READERS)


def read(text, maker):
    """The programs in what the driver of `maker` printed, in their order."""
    return [program for program in _READERS[maker](text.split("\n")) if program.instructions]


# ---- What the main loop holds

def _products(program, indices):
    return sum(program.instructions[i].products for i in indices)


def main_loop(program, products=0):
    """How often each instruction of the main loop runs in one turn: {index: times}; empty if no loop multiplies.

    It is the smallest loop that holds nearly all multiply-adds of the one with most. Where a turn of the kernel's loop over k has
    more `products` for each invocation, because a loop over its steps was left a loop, it is the loop around that one, and the
    steps' instructions run as often as the products need.
    """
    loops = [loop for loop in program.loops if _products(program, loop)]
    if not loops:
        return {}
    most = max(_products(program, loop) for loop in loops)
    # Of a known number: an innermost loop that has it, or a whole part of it. A loop around several such loops has more.
    innermost = [_products(program, loop) for loop in loops if not any(set(other) < set(loop) for other in loops)]
    most = max((count for count in innermost if products and 16 * count >= products and products % count == 0), default=most)
    inner = min((loop for loop in loops if _products(program, loop) >= 0.9 * most), key=len)
    once = _products(program, inner)
    around = [loop for loop in loops if set(inner) < set(loop)]
    if products > once and around:
        outer = min(around, key=len)
        times, rest = divmod(products - (_products(program, outer) - once), once)
        if times > 1 and rest == 0:
            within = set(inner)
            return {i: times if i in within else 1 for i in outer}
    return {i: 1 for i in inner}


def waits(program, turn):
    """For each global load of a turn: the multiply-adds before it, and those between it and the first wait for it.

    A loop's load may be waited for in the next turn. One that is not waited for in two turns is left out.
    """
    under_way, found, done = [], [], 0
    order = sorted(turn)
    for i in order + order:
        instruction = program.instructions[i]
        ended = [load for load in under_way if instruction.waits_all or load[0] in instruction.waits or
                 (isinstance(load[0], frozenset) and load[0] & instruction.waits)]
        if instruction.keeps is not None:
            ended = under_way[:max(0, len(under_way) - instruction.keeps)]
        for load in ended:
            under_way.remove(load)
            if load[1] and load[2] is not None:
                found.append((load[2], done - load[2]))
        if instruction.issues is not None and instruction.kind in LOADS:
            first_turn = done < sum(program.instructions[j].products * turn[j] for j in order)
            under_way.append((instruction.issues, instruction.kind == GLOBAL_LOAD, done if first_turn else None))
        done += instruction.products * turn[i]
    return found


def describe(program, products=0):
    """What decides the speed of a matrix product, counted; see main_loop for `products`.

    share: of the main loop's instructions those that multiply and add. For each multiply-add: load instructions, and bytes from
    shared and global memory. issued_share: the same share without what only waits. vector_share: of the cycles of the units that
    multiply and add, if they do nothing else but moves and other arithmetic. local: accesses to memory of the invocation's own. overlap: the part of a turn's multiply-adds that
    run before the first wait for a global load; none where the loop has no such load.
    """
    local = (LOCAL_LOAD, LOCAL_STORE)
    turn = main_loop(program, products)
    counts, moved, cycles = collections.Counter(), collections.Counter(), collections.Counter()
    for i, times in turn.items():
        one = program.instructions[i]
        counts[one.kind] += times
        moved[one.kind] += times * one.bytes
        cycles[one.kind] += times * max(1, one.lanes / 8)
    result = {"instructions": len(program.instructions), "local": sum(one.kind in local for one in program.instructions)}
    if program.width:
        result["width"] = program.width
    if not turn:
        return result
    done = sum(program.instructions[i].products * times for i, times in turn.items())
    waited = waits(program, turn)
    result["loop"] = {
        "instructions": sum(counts.values()),
        "products": done,
        "share": counts[MULTIPLY_ADD] / sum(counts.values()),
        "kinds": dict(counts.most_common()),
        "issued_share": counts[MULTIPLY_ADD] / (sum(counts.values()) - counts[WAIT]),
        "vector_share": cycles[MULTIPLY_ADD] / (cycles[MULTIPLY_ADD] + cycles[MOVE] + cycles[OTHER]),
        "shared_loads": counts[SHARED_LOAD] / done,
        "shared_bytes": moved[SHARED_LOAD] / done,
        "shared_store_bytes": moved[SHARED_STORE] / done,
        "global_loads": counts[GLOBAL_LOAD] / done,
        "global_bytes": moved[GLOBAL_LOAD] / done,
        "local": counts[LOCAL_LOAD] + counts[LOCAL_STORE],
        "overlap": min((after for _, after in waited), default=None) / done if waited else None,
    }
    return result
