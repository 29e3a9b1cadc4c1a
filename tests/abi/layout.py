#!/usr/bin/env python3
"""Size and place of every field of every struct of the plugin ABI, against layout.txt.

    layout.py [CC]         ends with 1 and a diff when the layout is not the recorded one
    layout.py --update     records the present layout; only after RUNG_ABI_DRAFT was raised

A plugin built yesterday reads today's structs at yesterday's places: a field that moved would be read
as another, silently. Structs grow only at their end.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "core" / "include"
GOLDEN = HERE / "layout.txt"


def structs(text):
    """(name, [field, ...]) of each struct that a header defines."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", " ", text, flags=re.S | re.M)
    for found in re.finditer(r"\bstruct\s+(rung_\w+)\s*\{(.*?)\}\s*;", text, flags=re.S):
        yield found[1], fields(found[2])


def fields(body):
    names = []
    for declaration in body.split(";"):
        declaration = declaration.strip()
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
        if pointer:
            names.append(pointer[1])
            continue
        for part in declaration.split(","):
            found = re.search(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$", part.strip())
            if found:
                names.append(found[1])
    return names


def program():
    """A C program that prints the layout."""
    headers = sorted(path.name for path in (INCLUDE / "rung").glob("*.h"))
    lines = ["#include <stdio.h>", *(f"#include <rung/{name}>" for name in headers), "int main(void)", "{",
             '    printf("abi %u draft %u\\n", RUNG_ABI_MAJOR, RUNG_ABI_DRAFT);']
    total = 0
    for header in headers:
        for name, members in structs((INCLUDE / "rung" / header).read_text()):
            total += 1
            lines.append(f'    printf("struct {name} %zu\\n", sizeof(struct {name}));')
            for member in members:
                lines.append(f'    printf("  {member} %zu %zu\\n", offsetof(struct {name}, {member}), '
                             f"sizeof(((struct {name} *)0)->{member}));")
    if total < 20:
        sys.exit(f"layout: only {total} structs found; the reader of headers is broken")
    return "\n".join([*lines, "}", ""])


def layout(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = f"{folder}/layout.c", f"{folder}/layout"
        pathlib.Path(source).write_text(program())
        subprocess.run([compiler, "-std=c11", f"-I{INCLUDE}", source, "-o", binary], check=True)
        return subprocess.run([binary], check=True, capture_output=True, text=True).stdout


def main():
    update = "--update" in sys.argv
    now = layout("cc" if update or len(sys.argv) < 2 else sys.argv[1])
    recorded = GOLDEN.read_text() if GOLDEN.exists() else ""
    if now == recorded:
        print(f"layout: {now.count('struct ')} structs as recorded")
        return 0
    if update:
        if recorded.split("\n")[0] == now.split("\n")[0]:
            sys.exit("layout: the layout changed: raise RUNG_ABI_DRAFT in core/include/rung/plugin.h first")
        GOLDEN.write_text(now)
        return 0
    sys.stdout.writelines(difflib.unified_diff(recorded.splitlines(True), now.splitlines(True), "recorded", "now"))
    print("layout: the ABI's layout changed. Meant? Raise RUNG_ABI_DRAFT, then tests/abi/layout.py --update")
    return 1


if __name__ == "__main__":
    sys.exit(main())
