"""What of the libraries' ABI is promised, for abi_since.sh.

  abi_promised.py specification LIBRARY   a suppression specification of libabigail by which abidw leaves out all the rest
  abi_promised.py source COMPILER         a source file with a pointer to each promised type, and to the values of C's constants
  abi_promised.py fitted FORMER NOW       the file NOW without what structs of C that carry their size have got at their end since FORMER

Promised are the names in the lists in interface/, and with a class all its members. Types count that promised headers define; all others
are opaque. Functions lead to most types, but not to what a std::vector holds, which is opaque itself: hence that source file.
"""
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from check_rooms import unpromised

include = here.parents[1] / "include"
headers = sorted(path.name for path in (include / "glgemm").glob("*.h*") if path.name not in unpromised)


def listed(language, *kinds):
    lines = [line.split(" ", 1) for line in (here / "interface" / f"{language}.txt").read_text().splitlines()]
    return [rest for kind, rest in lines if kind in kinds]


def output(*command, **how):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, **how).stdout


types = {rest.split(" ")[0] for rest in listed("c++", "class", "struct", "enum")}
functions = {}  # the words in each one's parameters
for rest in listed("c++", "function"):
    name, _, parameters = rest.replace("operator ", "operator").partition("(")
    functions.setdefault(name, set()).update(re.findall(r"\w+", parameters))


def is_promised(symbol):
    """Of a name as c++filt writes it."""
    if symbol.startswith("glgemm_"):
        return not symbol.startswith("glgemm_unpromised_")  # whose name is each version's own
    symbol = re.sub(r"\[abi:\w+\]", "", symbol)
    if of_type := re.match(r"(?:typeinfo|typeinfo name|vtable) for (.*)", symbol):
        return of_type[1] in types
    # A template's name has its result's type before it, and its arguments after it.
    name, _, parameters = symbol.partition("(")
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    name = name.split(" ")[-1]
    if name.rpartition("::")[0] in types:
        return True
    # Functions of one name may be promised for some types and not for others.
    others = {word for word in re.findall(r"glgemm::(\w+)", parameters) if f"glgemm::{word}" not in types}
    return name in functions and others <= functions[name]


def specification(library):
    symbols = [line.split()[-1] for line in output("nm", "-D", "--defined-only", library).splitlines()]
    names = output("c++filt", input="\n".join(symbols)).splitlines()
    promised = "|".join(symbol for symbol, name in zip(symbols, names) if is_promised(name))
    # libabigail knows by this label the types that are to be opaque. Without it, members of such types would be left out.
    print(f"""[suppress_type]
  label = Artificial private types suppression specification
  drop = yes
  source_location_not_regexp = (^|/)include/glgemm/({"|".join(map(re.escape, headers))})$|<stdin>$
[suppress_function]
  drop = yes
  symbol_name_not_regexp = ^({promised})$
[suppress_variable]
  drop = yes
  symbol_name_not_regexp = ^({promised})$""")


def fitted(former, now):
    """abidiff's own suppression of members at the end hides other changes of the struct as well."""
    sizes = {each.get("name"): int(each.get("size-in-bits")) for each in ElementTree.parse(former).iter("class-decl") if each.get("size-in-bits")}
    tree = ElementTree.parse(now)
    growing = {member.split("::")[0] for member in listed("c", "member") if "::struct_size " in member}
    for each in tree.iter("class-decl"):
        size = sizes.get(each.get("name"), 0)
        if each.get("name") in growing and 0 < size < int(each.get("size-in-bits", 0)):
            each.set("size-in-bits", str(size))
            for member in each.findall("data-member"):
                if int(member.get("layout-offset-in-bits")) >= size:
                    each.remove(member)
    tree.write(sys.stdout, "unicode")


def source(compiler):
    # Tables are rows of macros. glgemm.hpp includes the others; distributed.hpp needs MPI's headers, and glm.hpp GLM's.
    for name in headers:
        if not name.endswith("_table.h") and name not in ("glgemm.hpp", "distributed.hpp", "glm.hpp"):
            print(f"#include <glgemm/{name}>")
    templates = set(re.findall(r"template <.*>\s+(?:class|struct) (\w+)", "".join((include / "glgemm" / name).read_text() for name in headers)))
    for name in sorted(types | set(listed("c", "struct"))):
        if name.split("::")[-1] not in templates:
            print(f"{name}* glgemm_type_{name.replace('::', '_')};")
    of_c = output(compiler, "-E", "-P", "-x", "c", f"-I{include}", "-", input="#include <glgemm/glgemm_headless.h>\n")
    # An enum for each of C's: values that change places among enumerators of equal values are not seen.
    for block in ["GLGEMM_API_VERSION", *re.findall(r"enum \{(.*?)\}", of_c, re.S)]:
        names = re.findall(r"(?:^|,)\s*(GLGEMM_\w+)", block)
        print(f"enum values_{names[0]} : long long {{", *(f"  of_{name} = {name}," for name in names), "};", sep="\n")
        print(f"values_{names[0]}* glgemm_values_{names[0]};")


{"specification": specification, "source": source, "fitted": fitted}[sys.argv[1]](*sys.argv[2:])
