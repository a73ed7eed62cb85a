"""The types of matrices' elements, from include/glgemm/type_table.h, for the tools that are written in Python."""
import collections
import pathlib
import re

Type = collections.namedtuple("Type", "name NAME number bytes kind sum c host npy numpy")


def read():
    """The rows of the table by their names, in its order; `bytes` is a number."""
    text = (pathlib.Path(__file__).resolve().parent.parent / "include/glgemm/type_table.h").read_text()
    rows = [Type(*(part.strip().strip('"') for part in row.split(","))) for row in re.findall(r"^  ROW\((.*)\)\s*\\?$", text, re.M)]
    return {row.name: row._replace(bytes=int(row.bytes)) for row in rows}
