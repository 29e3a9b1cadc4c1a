#!/usr/bin/env python3
"""Compiles extracted device code with NVRTC to PTX, as the compiler plugin does: its prelude, its stub headers.

usage: compile.py DIR INCLUDE_DIR [LIBNVRTC]     INCLUDE_DIR: the toolkit's headers (and its cccl below)
Reads DIR/*.cu and *.names, writes DIR/*.ptx or *.log; each file in a process of its own, 60 s at most.
"""

import ctypes
import multiprocessing
import os
import pathlib
import re
import sys

PLUGIN = pathlib.Path(__file__).resolve().parents[2] / "plugins/codegen/nvrtc"
SECONDS = 60


def make_stubs(folder):
    """The plugin's own headers: empty ones for what hosts have, its prelude, its <cuda.h>."""
    folder.mkdir(exist_ok=True)
    table = re.search(r"empty_names\[\] = \{(.*?)\};", (PLUGIN / "headers.c").read_text(), re.S)[1]
    for name in re.findall(r'"([^"]+)"', table):
        (folder / name).write_text("")
    for ours, name in (("prelude.h", "rung_prelude.h"), ("std.h", "rung_std.h"), ("cuda.h", "cuda.h")):
        (folder / name).write_text((PLUGIN / "include" / ours).read_text())


def text_of(library, program, what):
    size = ctypes.c_size_t()
    getattr(library, "nvrtcGet%sSize" % what)(program, ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value + 1)
    getattr(library, "nvrtcGet%s" % what)(program, out)
    return out.value


def build(library, source, names, options):
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None)
    for name in names:
        library.nvrtcAddNameExpression(program, name.encode())
    flags = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = library.nvrtcCompileProgram(program, len(options), flags)
    return status == 0, text_of(library, program, "PTX" if status == 0 else "ProgramLog")


def compile_one(libname, path, options):
    library = ctypes.CDLL(libname)
    source = path.read_bytes()
    names = [n for n in path.with_suffix(".names").read_text().splitlines() if n]
    if b"std::" in source:
        options = options + ["--pre-include=rung_std.h"]
    ok, text = build(library, source, names, options)
    while not ok and names:  # an instantiation that the template refuses costs only itself
        bad = [n for n in names if n.split("<")[0].encode() in text and b"name expression" in text] or names
        names = [n for n in names if n not in bad[:1]]
        ok, text = build(library, source, names, options)
    unknown = set(re.findall(rb'identifier "([a-z_]+|[A-Z_]+)" is undefined', text))
    if not ok and unknown:  # parameters that a tuner or a build file defines
        ok, text = build(library, source, [], options + ["-D%s=16" % u.decode() for u in sorted(unknown)])
    path.with_suffix(".ptx" if ok else ".log").write_bytes(text)


def run(job):
    libname, path, options = job
    for old in (path.with_suffix(".ptx"), path.with_suffix(".log")):
        old.unlink(missing_ok=True)
    child = multiprocessing.Process(target=compile_one, args=(libname, path, options))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        path.with_suffix(".log").write_text("timeout")
    return path.with_suffix(".ptx").exists()


def main():
    folder, include = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    libname = sys.argv[3] if len(sys.argv) > 3 else "libnvrtc.so"
    make_stubs(folder / "stubs")
    options = ["--gpu-architecture=compute_90", "-std=c++17", "-default-device", "-lineinfo",
               "-I%s" % (folder / "stubs"), "-I%s" % include, "-I%s/cccl" % include, "--pre-include=rung_prelude.h"]
    paths = sorted(folder.glob("*.cu"))
    done = sum(run((libname, p, options)) for p in paths)
    print("%d files, %d compiled" % (len(paths), done))


if __name__ == "__main__":
    os.nice(5)
    main()
