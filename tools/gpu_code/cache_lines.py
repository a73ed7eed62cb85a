"""The lines of the cache that gemv's loads of B touch, counted over the kernel's addresses."""
import pathlib
import re

SUBGROUP, LINE = 32, 128  # invocations, bytes
SHADER = pathlib.Path(__file__).resolve().parents[2] / "shaders/shared_columns.glsl"


def _shared(workgroup, columns):
    """From shared_columns.glsl: the vectors that each invocation brings, and its ROW_OF(v, e) and COLUMN_OF(v, e)."""
    text = SHADER.read_text()
    begin = text.index("#if TN < PER_VECTOR")
    narrow, _, wide = text[begin:text.index("#endif", begin)].partition("#else")
    bodies = dict(re.findall(r"#define (\w+)\(v, e\) (.*)", narrow if columns < 4 else wide))
    of = {name: lambda v, e, body=body.replace("/", "//"): eval(body, {"v": v, "e": e, "TN": columns, "PER_VECTOR": 4})
          for name, body in bodies.items()}
    most, few, many = map(int, re.search(r"#if WORKGROUP > (\d+)\n#define SHARED_READS (\d+)\n#else\n#define SHARED_READS (\d+)", text).groups())
    return few if workgroup > most else many, of["ROW_OF"], of["COLUMN_OF"]


def _values(kernel):
    return {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", kernel)}


def products_of_turn(kernel):
    """The multiply-adds of an invocation for the rows of B that are brought to shared memory at a time; 0 where none are."""
    value = _values(kernel)
    return value["shared_b"] * _shared(value["workgroup"], value["tile_n"])[0] * value["workgroup"] * 4 * value["tile_m"] // value["lanes_k"]


def of_b(kernel, row, column, step=4, size=4):
    """How many lines a subgroup's loads of B touch, for each load of 16 bytes of A by all of its invocations. The next row of B lies `row`
    elements further, and the next column `column`; 16 bytes of A are `step` elements, and one of B has `size` bytes. Sums are of 4 bytes.
    None where the kernel reads panels, or is no gemv."""
    value = _values(kernel)
    if not kernel.startswith("gemv") or value["panels"]:
        return None
    columns, lanes, invocations = value["tile_n"], value["lanes_k"], range(SUBGROUP)
    brought, row_of, column_of = _shared(value["workgroup"], columns)
    turns = brought * value["workgroup"] * 4 / columns / (lanes * step)  # of all lanes, for what is brought at a time
    if value["shared_b"] and turns >= 1:
        loads = [[(row_of(v, e), column_of(v, e)) for v in (i * value["workgroup"] + lane for lane in invocations)]
                 for i in range(brought) for e in range(4)]
    else:
        loads, turns = [[(lane % lanes * step + e, j) for lane in invocations] for j in range(columns) for e in range(step)], 1
    return sum(len({(p * row + j * column) * size // LINE for p, j in load}) for load in loads) / turns
