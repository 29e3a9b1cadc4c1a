#!/usr/bin/env python3
"""llm/command: programs as models, through the program service of the real host.   command.py DRIVE RUNG"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

DRIVE, RUNG = sys.argv[1:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def ask(argv, request=None, **options):
    done = subprocess.run([DRIVE, RUNG, "command", json.dumps({"argv": argv} | options),
                           json.dumps(request or {"user": "Write it."})], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    line = json.loads(done.stdout)
    line["text"] = "".join(part["text"] for part in line["parts"]) if line["finish"] else ""
    return line


def script(folder, text):
    path = pathlib.Path(folder) / "model.sh"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def the_prompt_goes_in_and_the_reply_comes_out():
    reply = ask(["cat"])
    assert reply["status"] == 0 and reply["text"] == "Write it." and reply["finish"] == 1, reply
    assert reply["shown"] == "Write it." and reply["model"] == "cat" and reply["estimated"] == 1, reply
    assert (reply["input"], reply["output"], reply["tries"]) == (3, 3, 1), reply
    reply = ask(["cat"], {"user": "Write it.\n", "system": "Be brief."}, model="mine")
    assert reply["text"] == "# system\n\nBe brief.\n\n# user\n\nWrite it.", reply
    assert reply["model"] == "mine", reply


def json_is_one_line():
    reply = ask(["cat"], {"user": "a\n\"b\"", "system": "Be brief.", "cap": 9, "temperature": 0.5, "effort": 2,
                          "tool": "search", "schema": "{\"type\":\"object\"}"}, format="json")
    assert json.loads(reply["text"]) == {
        "key": "code/1/0", "role": "code", "seed": 0, "max_output_tokens": 9, "temperature": 0.5, "effort": 2,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a\n\"b\""}],
        "tools": [{"name": "search", "summary": "", "schema": {"type": "object"}}], "schema": {"type": "object"}}, reply
    assert "\n" not in reply["text"]


def no_shell_reads_anything(folder):
    mark = f"{folder}/mark"
    reply = ask(["printf", "%s|", f"$(touch {mark})", "`id`", "; a > b", "*"])
    assert reply["text"] == f"$(touch {mark})|`id`|; a > b|*|", reply
    reply = ask(["cat"], {"user": f"$(touch {mark}); `touch {mark}`"})
    assert reply["status"] == 0 and not os.path.exists(mark), reply


def a_large_prompt_meets_a_large_reply():
    text = "x" * 100000
    reply = ask(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' 'y'; cat >/dev/null"], {"user": text})
    assert reply["status"] == 0 and len(reply["text"]) == 3000000, reply["status"]
    reply = ask(["true"], {"user": text})  # reads nothing, says nothing
    assert (reply["status"], reply["symbol"]) == (6, "llm.reply"), reply


def what_goes_wrong_is_told(folder):
    reply = ask(["/nowhere/at/all"])
    assert reply["status"] == 10 and "/nowhere/at/all" in reply["message"], reply
    reply = ask(["sh", "-c", "echo half; echo 'no such model' >&2; exit 3"])
    assert (reply["status"], reply["symbol"]) == (2, "llm.request"), reply
    assert "status 3: no such model" in reply["message"], reply
    reply = ask(["sh", "-c", "echo 'come again' >&2; exit 75"])
    assert (reply["status"], reply["symbol"]) == (10, "llm.overloaded"), reply
    reply = ask(["sh", "-c", "kill -SEGV $$"])
    assert reply["status"] == 2 and "signal 11" in reply["message"], reply
    reply = ask(["sh", "-c", "printf '  \\n\\n'"])
    assert reply["status"] == 6 and "wrote nothing" in reply["message"], reply
    reply = ask(["yes"], max_output=2048)
    assert reply["status"] == 6 and "too_large" in reply["symbol"], reply
    reply = ask(["printf", r"a\377\000b"])
    assert reply["text"] == "a\ufffd\ufffdb", reply


def the_deadline_ends_the_whole_group(folder):
    mark = f"{folder}/late"
    began = time.monotonic()
    reply = ask([script(folder, f"(sleep 3; touch {mark}) & sleep 30\n")], {"user": "x", "deadline_ms": 500})
    assert reply["status"] == 7 and time.monotonic() - began < 10, reply
    reply = ask(["sleep", "30"], timeout="1s")
    assert reply["status"] == 7, reply
    time.sleep(3)
    assert not os.path.exists(mark), "a child of the program lived on"


PIPELINE = """
task = "%s/config/tasks/softmax_small.cfg";
llm = ( { plugin = "command"; argv = ( "%s", "%s" ); } );
search = { plugin = "branching"; rounds = 1; ideas = 1; branches = 1; keep = 1; repairs = 0; tune = 1; };
workers = ( { device = "ptx"; count = 1; } );
budget = { evaluations = 1; };
"""
MODEL = """
import sys
assert "# system" in sys.stdin.read()
print("- [memory] Find maximum and sum in one read of the row.\\n\\n```cuda")
print(open(%r).read() + "```")
"""


def a_program_writes_the_kernels_of_a_run(folder):
    model, config = pathlib.Path(folder, "model.py"), pathlib.Path(folder, "command.cfg")
    model.write_text(MODEL % str(ROOT / "tests/sound/online_fast_exp.cu"))
    config.write_text(PIPELINE % (ROOT, sys.executable, model))
    done = subprocess.run([RUNG, "run", str(config), "--json", "--out", f"{folder}/run"], capture_output=True,
                          text=True, timeout=200)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert json.loads(done.stdout)["best"], done.stdout


def options_are_checked():
    for options in ({"argv": []}, {"argv": [""]}):
        done = subprocess.run([DRIVE, RUNG, "command", json.dumps(options), "{\"user\":\"x\"}"], capture_output=True,
                              text=True, timeout=60)
        line = json.loads(done.stdout)
        assert line["status"] == 2, line


def main():
    with tempfile.TemporaryDirectory() as folder:
        the_prompt_goes_in_and_the_reply_comes_out()
        json_is_one_line()
        no_shell_reads_anything(folder)
        a_large_prompt_meets_a_large_reply()
        what_goes_wrong_is_told(folder)
        the_deadline_ends_the_whole_group(folder)
        options_are_checked()
        a_program_writes_the_kernels_of_a_run(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
