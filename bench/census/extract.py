#!/usr/bin/env python3
"""Cuts device code out of public sources, for the census: host functions, torch and main go.

usage: extract.py OUT_DIR SOURCE...        SOURCE: a folder, or a .cu .cuh .py .json file
Writes OUT_DIR/<n>_<name>.cu, and beside it <n>_<name>.names: one name expression a line for kernel
templates, taken from the launches in the host code or made up from the template's parameters.
"""

import hashlib
import json
import pathlib
import re
import sys

HOST_WORDS = re.compile(
    r"\btorch::|\bat::|\bc10::|\bpy::|PYBIND11|TORCH_|AT_DISPATCH|<<<|\bstd::(vector|string|cout|cerr|mt19937|"
    r"random|chrono|unique_ptr|map|thread|function|ofstream|ifstream|cin)\b|\bcuda(Malloc|Memcpy|Free|Device|Event|Stream|"
    r"Get|Set|Error|Launch|Func|Occupancy|Mem)\w*|\bcublas|\bcudnn|\bcudaError_t\b|\bmalloc\(|\bfprintf\(|\bexit\(|"
    r"\bFILE\b|\brand\(|\bstd::function"
)
DEVICE_WORDS = re.compile(r"__(global|device|constant|shared|managed)__")
HOST_INCLUDES = re.compile(r"torch|ATen|c10|pybind|Python|cublas|cudnn|cutensor|nccl|mpi|thrust/|helper_|nvtx|"
                           r"common\.h|vector>|string>|chrono|random|memory>|iostream|fstream|sstream|map>|unistd|sys/|"
                           r"iomanip|thread|functional|numeric|cuda_profiler|omp\.h|nvToolsExt|solve\.h")


def strip_comments(text):
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, lambda m: m[0] if m[0][0] in "\"'" else " ", text, flags=re.S)


def close_of(text, start):
    """Index behind the brace that closes the one at start."""
    depth, i = 0, start
    while i < len(text):
        c = text[i]
        if c in "\"'":
            end = re.compile(r"\\.|[^\\]", re.S)
            j = i + 1
            while j < len(text) and text[j] != c and text[j] != "\n":
                j = end.match(text, j).end()
            i = j
        elif c == "{":
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return len(text)


def items(text):
    """Top-level pieces: preprocessor lines, and declarations up to ; or a closing brace."""
    i, start = 0, 0
    while i < len(text):
        if text[i] == "#" and not text[start:i].strip():
            m = re.compile(r"(?:[^\n\\]|\\\n|\\.)*\n?").match(text, i)
            yield "pp", text[i : m.end()]
            i = start = m.end()
        elif text[i] in "\"'":
            m = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|.', re.S).match(text, i)
            i = m.end()
        elif text[i] == ";":
            yield "decl", text[start : i + 1]
            i = start = i + 1
        elif text[i] == "{":
            end = close_of(text, i)
            head = text[start:i]
            if re.search(r'(extern\s*"C"|\bnamespace\b[\w\s:]*)\s*$', head):
                yield "open", head + "{"
                yield from items(text[i + 1 : end - 1])
                yield "close", "}"
            else:
                tail = re.compile(r"[^;{}#]*;").match(text, end)
                if tail and re.search(r"\b(struct|class|union|enum)\b[^()]*$|=\s*$", head):
                    end = tail.end()
                yield "body", text[start:end]
            i = start = end
        else:
            i += 1


def keep_include(line):
    m = re.search(r'#\s*include\s*([<"][^>"]+[>"])', line)
    return m is None or not (m[1][0] == '"' or HOST_INCLUDES.search(m[1]))


def is_function(head):
    return re.search(r"\)\s*(const)?\s*(noexcept)?\s*(->[^{]*)?$", head.split("{")[0].rstrip())


def device_text(text):
    kept, maybe = [], []
    for kind, piece in items(strip_comments(text)):
        if kind == "pp":
            keep = keep_include(piece)
        elif kind in ("open", "close"):
            keep = True
        elif DEVICE_WORDS.search(piece):
            keep = not re.search(r"<<<|torch::|\bmain\s*\(", piece)
        elif kind == "body" and is_function(piece):
            keep = re.search(r"\bconstexpr\b", piece) and not HOST_WORDS.search(piece)
            name = re.search(r"(\w+)\s*\(", piece)
            if not keep and name and not HOST_WORDS.search(piece) and name[1] != "main":
                maybe.append((len(kept), name[1]))
                kept.append((None, piece))
                continue
        else:
            keep = not HOST_WORDS.search(piece)
        if keep:
            kept.append((True, piece))
    sure = "\n".join(p for k, p in kept if k)
    wanted = {at for at, name in maybe if re.search(r"\b%s\s*\(" % re.escape(name), sure)}
    return "\n".join(p for at, (k, p) in enumerate(kept) if k or at in wanted)


def default_argument(parameter):
    head = parameter.split("=")[0]
    if re.search(r"\b(typename|class)\b", head):
        return "float"
    return "true" if "bool" in head else "16"


def name_expressions(source, device):
    """One instantiation for every kernel template."""
    found = []
    for m in re.finditer(r"template\s*<([^>]*(?:<[^>]*>[^>]*)*)>\s*(?:static\s+)?__global__[^({;]*?(?:__launch_bounds__\s*"
                         r"\([^)]*\)\s*)?(?:void\s+)?(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(", device):
        name, parameters = m[2], [p for p in m[1].split(",") if p.strip()]
        used = re.findall(r"\b%s\s*<([^<>;()]+)>\s*<<<" % name, source)
        literal = [u for u in used if re.fullmatch(r"\s*(?:(?:float|double|int|true|false|__half|half|\d+)\s*,?\s*)+", u)]
        made_up = ", ".join(default_argument(p) for p in parameters)
        found.append("%s<%s>" % (name, (literal or [made_up])[0].strip()))
    return sorted(set(found))


def cuda_strings(text):
    """CUDA sources inside Python strings, each with what was put in front of it."""
    found = re.findall(r'[rfRF]{0,2}("""|\'\'\')(.*?)\1', text, flags=re.S)
    return [t for _, t in found if "__global__" in t]


def inlined(path, seen):
    """The text with the project's own headers in place."""
    def put(m):
        header = (path.parent / m[1]).resolve()
        if header in seen or not header.is_file() or re.search(r"helper_|torch", m[1]):
            return m[0]
        seen.add(header)
        return "\n" + inlined(header, seen) + "\n"

    return re.sub(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', put, path.read_text(errors="replace"), flags=re.M)


def texts_of(path):
    text = path.read_text(errors="replace")
    if path.suffix in (".cu", ".cuh"):
        return [inlined(path, set())] if "__global__" in text else []
    if path.suffix == ".py":
        return cuda_strings(text)
    out = []
    for line in text.splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        values = record.values() if isinstance(record, dict) else []
        for value in values:
            if isinstance(value, str) and "__global__" in value:
                out += cuda_strings(value)
    return out


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for argument in sys.argv[2:]:
        p = pathlib.Path(argument)
        paths += sorted(q for q in p.rglob("*") if q.suffix in (".cu", ".cuh", ".py", ".json") and q.is_file()) \
            if p.is_dir() else [p]
    seen, n = set(), 0
    for path in paths:
        for text in texts_of(path):
            device = device_text(text)
            key = hashlib.sha256(re.sub(r"\s+", "", device).encode()).digest()
            if "__global__" not in device or key in seen:
                continue
            seen.add(key)
            base = out / ("%04d_%s" % (n, re.sub(r"\W+", "_", path.stem)[:40]))
            base.with_suffix(".cu").write_text(device)
            base.with_suffix(".names").write_text("\n".join(name_expressions(text, device)))
            n += 1
    print("%d files of device code" % n)


if __name__ == "__main__":
    main()
