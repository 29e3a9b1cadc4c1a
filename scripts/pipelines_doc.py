#!/usr/bin/env python3
"""Writes the settings of the built plugins, out of their own tables, into docs/pipelines.md.

    pipelines_doc.py RUNG [--check]

--check writes nothing and fails when the page says something else."""
import json
import os
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/pipelines.md"
BEGIN, END = "<!-- settings: written by scripts/pipelines_doc.py -->\n", "<!-- end of settings -->\n"
KINDS = ["llm", "codegen", "compiler", "search", "examples", "context", "device", "reference", "verifier", "timer",
         "baseline", "profiler"]
STAGES = {"llm": "llm", "device": "devices", "reference": "references", "verifier": "rungs", "timer": "timers",
          "baseline": "timing.baselines", "profiler": "profile"}


def number(value):
    digits = str(int(value)) if value == int(value) else repr(value)
    return f"10^{len(digits) - 1}" if len(digits) > 7 and set(digits[1:]) == {"0"} and digits[0] == "1" else digits


def size(value):
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit and value % unit == 0 and (unit >= 1 << 20 or value < 1 << 20):
            return f"{int(value) // unit}{name}"
    return number(value)


def allowed(option):
    if "values" in option:
        return ", ".join(f"`{v}`" for v in option["values"])
    if "min" not in option:
        return ""
    show = size if option["type"] == "bytes" else number
    unit = f" {option['unit']}" if option.get("unit") and option["type"] != "bytes" else ""
    return f"{show(option['min'])} to {show(option['max'])}{unit}"


def default(option):
    if option["required"]:
        return "required"
    return f"`{option['default']}`" if option.get("default") else ""


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def section(factory):
    stage = STAGES.get(factory["kind"], factory["kind"])
    text = f"### {factory['kind']} {factory['name']}\n\n{factory['summary']} (in `{stage}`)\n\n"
    if not factory["options"]:
        return text + "No settings.\n\n"
    text += "| setting | type | allowed | default | meaning |\n|---|---|---|---|---|\n"
    for o in factory["options"]:
        cells = [f"`{o['name']}`", o["type"], allowed(o), default(o), cell(o["summary"])]
        text += "| " + " | ".join(cells) + " |\n"
    return text + "\n"


def sections(rung):
    env = {name: value for name, value in os.environ.items() if name != "RUNG_PLUGIN_PATH"}
    done = subprocess.run([rung, "plugin", "list", "--json"], capture_output=True, text=True, env=env, check=True)
    plugins = json.loads(done.stdout)
    refused = [p["error"] for p in plugins if "error" in p]
    if refused:
        sys.exit("pipelines_doc: " + refused[0])
    factories = [f for p in plugins for f in p["factories"]]
    factories.sort(key=lambda f: (KINDS.index(f["kind"]) if f["kind"] in KINDS else len(KINDS), f["kind"], f["name"]))
    return "".join(section(f) for f in factories)


def main():
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    fresh = head + BEGIN + "\n" + sections(sys.argv[1]) + END + tail
    if "--check" not in sys.argv[2:]:
        PAGE.write_text(fresh)
    elif fresh != page:
        sys.exit(f"pipelines_doc: {PAGE.name} is not what the plugins say; run: scripts/pipelines_doc.py {sys.argv[1]}")


main()
