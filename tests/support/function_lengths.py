#!/usr/bin/env python3
"""Checks that no function is too long.

    function_lengths.py FOLDER=MAX...      fails, with a list, if a function in FOLDER has more than MAX lines
    function_lengths.py --list FOLDER...   prints all functions, the longest first

A function's lines are those from its head, without comments and `template` above it, to its closing brace. A lambda counts as a
part of the function in which it stands. What it goes by is braces, so that the code has to be formatted as by clang-format. Of
#if, #elif and #else each branch begins with the braces that are open before #if. Shaders are read in the same way: what a function
includes does not count, and neither do macros that stand outside of it.
"""
import pathlib
import re
import sys

BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Fa-f])\'(?:[^\'\\\n]|\\.)+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    re.DOTALL | re.MULTILINE)


def functions(text):
    """Yields (name, first line, number of lines) of each function."""
    branches = {}  # the directives of conditional code, by their places

    def blanked(match):
        directive = re.match(r'[ \t]*#[ \t]*(if|el|endif)', match.group())
        if directive:
            branches[match.start()] = directive.group(1)
        return re.sub(r'[^\n]', ' ', match.group())

    text = BLANKED.sub(blanked, text)
    inside = []  # for each open brace: None, or the head and beginning of a function
    before_if = []  # for each open #if: the braces that were open before it
    head_begin = 0
    for at in sorted({match.start() for match in re.finditer(r'[{};]', text)} | branches.keys()):
        token = branches.get(at, text[at])
        if token == 'if':
            before_if.append(inside[:])
        elif token == 'el':
            inside = before_if[-1][:]
        elif token == 'endif':
            before_if.pop()
        in_function = any(each is not None for each in inside)
        if token == ';':
            if not in_function and text.count('(', head_begin, at) == text.count(')', head_begin, at):
                head_begin = at + 1
        elif token == '{':
            head = text[head_begin:at]
            inside.append((head, head_begin) if not in_function and opens_function(head) else None)
            if not in_function and inside[-1] is None:
                if re.search(r'=\s*$|[\w>]\s*$', head) and not re.match(r'\s*(inline\s+)?(namespace|extern)\b', head) and not is_type(head):
                    inside[-1] = ('', head_begin)  # a value in braces: what is in it is no declaration
                else:
                    head_begin = at + 1
        elif token == '}' and inside:
            was = inside.pop()
            if was is None:
                if not any(each is not None for each in inside):
                    head_begin = at + 1
                continue
            if re.match(r'\s*[,{]', text[at + 1:at + 200]) and ':' in was[0]:
                continue  # a member in a constructor's list: the body is still to come
            head, begin = was
            if head:
                begin += len(head) - len(re.sub(r'^\s*(?:(?:public|private|protected)\s*:\s*)?(?:template\s*<.*?>\s*\n)?\s*', '', head, flags=re.DOTALL))
                first = text.count('\n', 0, begin) + 1
                yield name_of(head), first, text.count('\n', 0, at) + 2 - first
            head_begin = at + 1


def is_type(head):
    head = re.sub(r'template\s*<.*?>\s*\n', '', head, flags=re.DOTALL)
    return re.match(r'\s*(?:(?:public|private|protected)\s*:\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b[^(]*$', head) is not None


def opens_function(head):
    if '(' not in head or is_type(head):
        return False
    before_list = head.split('(')[0]
    return '=' not in before_list.replace('operator', '').replace('==', '') or re.search(r'\][^=]*\)[^=;]*$', head) is not None


def name_of(head):
    before = head.split('(')[0] if 'operator()' not in head else 'operator()'
    words = re.findall(r'[\w:~]+|operator\S+', before)
    return words[-1] if words else '?'


def self_check():
    """The count is right for what is hard to count."""
    text = '''
namespace n {
constexpr int values[] = {f(1), 2};
/// A comment with a { and "quotes".
template <class T>
int one(T x) {
  const char brace = '{'; /* } */
  return x(R"({{{)", "}");
}
struct S {
  int member{};
  S(int a)
      : member{a},
        other(1) {}
  void two() const {
    if (member) {
      const auto f = [&] { return 1; };
    }
  }
};
enum class E { a, b };
const auto lambda = [](int x) {
  return x;
};
}  // namespace n
TEST_CASE("a (name) with { in it" * doctest::timeout(3)) {
  for (const Row& row : {Row{1, 2},
                         Row{3, 4}})
    CHECK(row.f([&] {
      return 1;
    }) == 2);
}
TEST_CASE_TEMPLATE("types", T, float, double) {
  SUBCASE("one") {
    CHECK(T() == 0);
  }
}
void last() {}
'''
    shader = '''
layout(local_size_x = 64) in;
#define KEEP(t) { s[t] = \\
  next[t]; }
#if WIDE
int at(int i) { return i; }
#else
int at(int i) {
  return 2 * i;
}
#endif
void main() {
#if FEW
  if (lane < 4) {
#else
  for (int i = 0; i < 4; ++i) {
#endif
    KEEP(1)
  }
  switch (kind) {
#if ONE
  }
  return;
#else
    case 1: break;
  }
#endif
}
'''
    expected = [('one', 6, 4), ('S', 12, 3), ('two', 15, 5), ('lambda', 22, 3), ('TEST_CASE', 26, 7),
                ('TEST_CASE_TEMPLATE', 33, 5), ('last', 38, 1), ('at', 6, 1), ('at', 8, 3), ('main', 12, 17)]
    found = list(functions(text)) + list(functions(shader))
    if found != expected:
        sys.exit(f'function_lengths.py counts wrongly: {found} instead of {expected}')


def all_in(folder):
    found = []
    for path in sorted(pathlib.Path(folder).rglob('*')):
        if path.suffix in ('.cpp', '.hpp', '.h', '.c', '.comp', '.glsl'):
            found += [(lines, str(path), first, name) for name, first, lines in functions(path.read_text(encoding='utf-8'))]
    if not found:
        sys.exit(f'function_lengths.py: no function in {folder}')
    return sorted(found, reverse=True)


def main(arguments):
    self_check()
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == '--list':
        for folder in arguments[1:]:
            for lines, path, first, name in all_in(folder):
                print(f'{lines:4} {path}:{first} {name}')
        return
    failed = False
    for argument in arguments:
        folder, _, most = argument.rpartition('=')
        found = all_in(folder)
        print(f'{folder}: {len(found)} functions, the longest has {found[0][0]} lines, at most {most} are allowed')
        for lines, path, first, name in found:
            if lines > int(most):
                print(f'  {path}:{first}: {name} has {lines} lines')
                failed = True
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
