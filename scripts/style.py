#!/usr/bin/env python3
"""The gates on the look of the code:  style.py [ROOT]

Functions of at most 60 lines, files of at most 600, lines of at most 100 columns,
no tabs, no blanks at the end of a line, no banned functions in core/ and plugins/, and no plugin that
includes anything of core/ but <rung/...>. Prints every offence and ends with 1 when there is one.
"""
import pathlib
import re
import sys

MAX_FUNCTION, MAX_FILE, MAX_COLUMNS = 60, 600, 100
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|atoi|atol|atof|strtok|rand|srand|setlocale|gets)\s*\(")
FOLDERS = ("core", "plugins", "tests", "bench")
CORE_INCLUDE = re.compile(r'#\s*include\s*"(?:core/|(base|plugin|http|config|task|journal|worker|session|engine|cli)/)')


def strip_text(line):
    """The line without string and character literals and line comments."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', '""', line)
    line = re.sub(r"'(?:\\.|[^'\\])*'", "' '", line)
    return line.split("//")[0]


def functions(lines):
    """(first line, length) of each body that starts with a brace in column one."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{") and start is None:
            start = number
        elif line.startswith("}") and start is not None:
            yield start, number - start + 1
            start = None


def name_before(lines, number):
    for line in reversed(lines[max(0, number - 6):number - 1]):
        found = re.search(r"([A-Za-z_][A-Za-z0-9_]*)\s*\(", line)
        if found and not line.startswith((" ", "\t")):
            return found[1]
    return "?"


def check_lines(lines, bans):
    in_comment = False
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, more than {MAX_COLUMNS}"
        code = strip_text(line)
        if in_comment:
            in_comment = "*/" not in code
            continue
        code = re.sub(r"/\*.*?\*/", "", code)
        in_comment = "/*" in code
        found = BANNED.search(code.split("/*")[0])
        if found and bans:
            yield number, f"{found[1]}() is banned"


def check_file(path, relative):
    lines = path.read_text(encoding="utf-8").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    yield from check_lines(lines, relative.parts[0] in ("core", "plugins"))
    if len(lines) > MAX_FILE:
        yield len(lines), f"{len(lines)} lines, more than {MAX_FILE}"
    for start, length in functions(lines):
        if length > MAX_FUNCTION:
            yield start, f"{name_before(lines, start)}() has {length} lines, more than {MAX_FUNCTION}"
    if relative.parts[0] == "plugins":
        for number, line in enumerate(lines, 1):
            if CORE_INCLUDE.search(line) and not (path.parent / line.split('"')[1]).exists():
                yield number, f"a plugin includes a file of core/: {line.strip()}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    offences = files = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".h"):
                continue
            files += 1
            relative = path.relative_to(root)
            for number, what in check_file(path, relative):
                print(f"{relative}:{number}: {what}")
                offences += 1
    print(f"style: {files} files, {offences} offences")
    return 1 if offences or not files else 0


if __name__ == "__main__":
    sys.exit(main())
