#!/usr/bin/env python3
"""Runs the two kernel corpora through `rung eval`: tests/exploits must be rejected with the right
code, tests/sound accepted. usage: corpora.py RUNG [NAME...]"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def header(path):
    fields = {"set": []}
    for line in path.read_text().splitlines():
        found = re.match(r"// (task|expect|set|why): (.*)", line)
        if found and found[1] == "set":
            fields["set"].append(found[2])
        elif found:
            fields[found[1]] = found[2]
    return fields


def judge(rung, path, fields):
    task = fields["task"] if "/" in fields["task"] else f"config/tasks/{fields['task']}"
    command = [rung, "eval", f"{ROOT}/{task}.cfg", str(path), "--device", "ptx", "--json"]
    for assignment in fields["set"]:
        command += ["--set", assignment]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    try:
        return json.loads(done.stdout), done
    except json.JSONDecodeError:
        return {"verdict": "none", "code": done.stderr.strip()[-300:]}, done


def check(rung, path, must_pass):
    fields = header(path)
    report, done = judge(rung, path, fields)
    if "root:" in done.stdout + done.stderr:
        return "a host file reached the output"
    if must_pass:
        good = report["verdict"] == "accepted" and done.returncode == 0
        return None if good else f"{report['verdict']} {report.get('code')}: {done.stderr[-300:]}"
    wanted = fields["expect"].split()
    good = report["verdict"] == "rejected" and report["code"] in wanted and done.returncode == 1
    return None if good else f"wanted {wanted}, got {report['verdict']} {report.get('code')}"


def main():
    rung, names, passed, failed = sys.argv[1], sys.argv[2:], 0, 0
    for folder, must_pass in (("exploits", False), ("sound", True)):
        for path in sorted((ROOT / "tests" / folder).glob("*.cu")):
            if names and path.stem not in names:
                continue
            fault = check(rung, path, must_pass)
            passed, failed = passed + (not fault), failed + bool(fault)
            print(f"{'FAIL' if fault else 'ok  '} {folder}/{path.stem} {fault or ''}", flush=True)
    print(f"corpora: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
