"""What the tests of models share: a task whose kernels cost nothing to judge, a pipeline on the workers of the
test suite's fakes, and runs of it."""
import json
import os
import pathlib
import sqlite3
import subprocess

TASK = """name = "nothing"; summary = "Nothing at all";
dims = { rows = 8; };
tensors = ( { name = "x"; role = "input"; dtype = "f32"; shape = "rows"; },
            { name = "y"; role = "output"; dtype = "f32"; shape = "rows"; } );
reference = { plugin = "zero"; graph = "y = 0 * x"; };
"""
PIPELINE = """task = "task.cfg"; plugin_path = [ "%(plugins)s/worker_plugins", "%(plugins)s/engine_plugins" ];
compiler = { plugin = "fake"; };
search = { plugin = "branching"; rounds = 1; ideas = 1; branches = 1; keep = 1; tune = 0; repairs = 0; };
devices = ( { plugin = "null"; } );
workers = ( { device = "null"; count = 2; } );
references = ( { plugin = "zero"; } );
rungs = ( { plugin = "marker"; } );
timers = ( { plugin = "fake"; } );
"""
KERNEL = """```cuda
//@ launch k grid=(1) block=(32) args=(rows, rows)
__global__ void k(long long a, long long b)
{
    // %s
}
```
"""
IDEA = "- [memory] Move the data in another order than before.\n"


def kernel(note="plain"):
    return KERNEL % note


def stop(text, **more):
    return {"text": text, "finish": "stop", "usage": {"input": 100, "output": 10}} | more


class Lab:
    """A folder with a task and pipelines; plugins: the folder of the build tree's test plugins."""

    def __init__(self, rung, plugins, folder):
        self.rung, self.plugins, self.folder = rung, str(plugins), pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "task.cfg").write_text(TASK)

    def write(self, llm, more=""):
        (self.folder / "run.cfg").write_text(PIPELINE % {"plugins": self.plugins} + llm + more)

    def script(self, name, steps, **options):
        """An item of `llm` that plays steps."""
        (self.folder / f"{name}.json").write_text(json.dumps(steps))
        rest = "".join(f" {key} = {value};" for key, value in options.items())
        return (f'{{ name = "{name}"; plugin = "script"; as = "{name}"; script = "{name}.json"; '
                f'log = "{self.folder}/log.jsonl";{rest} }}')

    def command(self, *arguments):
        return [self.rung, "run", str(self.folder / "run.cfg"), "--json", "--out", str(self.folder / "run"), *arguments]

    def run(self, *arguments, env=None, timeout=120):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=timeout,
                              env=dict(os.environ, **(env or {})))
        done.report = json.loads(done.stdout) if done.stdout.strip() else None
        return done

    def resume(self, *arguments, timeout=120):
        done = subprocess.run([self.rung, "run", "--resume", str(self.folder / "run"), "--json", *arguments],
                              capture_output=True, text=True, timeout=timeout)
        done.report = json.loads(done.stdout) if done.stdout.strip() else None
        return done

    def asked(self):
        """Requests as the scripted models saw them."""
        path = self.folder / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def records(self, kind):
        """{key: json} of the journal's records of a type, in order."""
        with sqlite3.connect(f"file:{self.folder}/run/journal.db?mode=ro", uri=True) as db:
            rows = db.execute("SELECT key, json FROM records WHERE type = ? ORDER BY seq", (kind,)).fetchall()
        return {key: json.loads(text) for key, text in rows}


def texts(request):
    """The request's texts, one string a message."""
    return ["".join(part["text"] for part in message["parts"]) for message in request["messages"]]
