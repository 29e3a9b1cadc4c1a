#!/usr/bin/env python3
"""`rung doctor --llm`: what it tells of models that answer and of those that don't, never a key's value.
usage: llm_doctor.py RUNG TEST_BIN"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from llm_lab import Lab, stop

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECRET = "a-secret-that-nobody-shall-see"
LLM = """llm = ( { name = "good"; plugin = "openai"; model = "mock-1"; url = "http://127.0.0.1:%(port)d"; key = "env:RUNG_MOCK_KEY";
            price = { input = 2.0; output = 10.0; }; },
          { name = "keyless"; plugin = "openai"; model = "mock-1"; url = "http://127.0.0.1:%(port)d"; key = "env:RUNG_NO_KEY"; },
          { plugin = "replay"; cassette = "none.jsonl"; }, %(script)s );
"""


def doctor(lab, *arguments):
    done = subprocess.run([lab.rung, "doctor", "--llm", str(lab.folder / "run.cfg"), *arguments], capture_output=True,
                          text=True, timeout=120, env=dict(os.environ, RUNG_MOCK_KEY=SECRET))
    assert SECRET not in done.stdout + done.stderr, "the key was printed"
    return done


def main():
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(sys.argv[1], sys.argv[2], folder)
        mock = subprocess.Popen([sys.executable, ROOT / "bench/llm/mock.py", "--ledger", f"{folder}/ledger"],
                                stdout=subprocess.PIPE, text=True)
        try:
            lab.write(LLM % {"port": int(mock.stdout.readline()), "script": lab.script("scripted", {
                "*": [stop("ready", limits={"requests_left": 7, "tokens_left": 900, "reset_ms": 10})]})})
            people, data = doctor(lab), doctor(lab, "--json")
            well = doctor(lab, "--set", "llm.keyless.key=env:RUNG_MOCK_KEY")
        finally:
            mock.kill()
            mock.wait()
        broken = doctor(lab, "--set", "llm.good.modell=x")
    assert people.returncode == data.returncode == 3, (people, data)
    assert well.returncode == 0, well
    assert broken.returncode == 2 and "modell" in broken.stderr, broken
    llms = {llm["name"]: llm for llm in json.loads(data.stdout)["llms"]}
    good, keyless = llms["good"], llms["keyless"]
    assert good["answers"] and good["said_model"] == "mock-1" and 0 < good["seconds"] < 60, good
    assert good["key"] == {"from": "env:RUNG_MOCK_KEY", "present": True}, good
    assert good["price"]["input"] == 2.0 and keyless["price"] is None, llms
    assert not keyless["answers"] and not keyless["key"]["present"] and "RUNG_NO_KEY" in keyless["error"]["message"]
    assert llms["replay"]["free"] and llms["replay"]["answers"], llms
    assert llms["scripted"]["limits"]["requests_left"] == 7, llms
    for words in ("good", "does not answer", "RUNG_NO_KEY: not there", "not known", "costs nothing"):
        assert words in people.stdout, (words, people.stdout)
    print("doctor: " + ", ".join(f"{name} {'answers' if llm['answers'] else 'does not'}" for name, llm in llms.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
