#!/usr/bin/env python3
"""The command line as a user meets it: help, exit status, plugins good and bad, one judged kernel, one
short run. usage: commands.py RUNG GOOD_PLUGINS FAULTY_PLUGINS CRASHING_PLUGINS"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNG, GOOD, FAULTY, CRASHING = sys.argv[1:5]
TASK = f"{ROOT}/config/tasks/softmax_small.cfg"
SOUND = f"{ROOT}/tests/sound/serial.cu"


def rung(*arguments, path=None, cwd=None, **variables):
    env = {name: value for name, value in os.environ.items() if name != "RUNG_PLUGIN_PATH"}
    env.update(variables)
    if path:
        env["RUNG_PLUGIN_PATH"] = path
    return subprocess.run([RUNG, *arguments], capture_output=True, text=True, timeout=300, env=env, cwd=cwd)


class Basics(unittest.TestCase):
    def test_version_and_help_go_to_standard_output(self):
        done = rung("--version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^rung \d+\.\d+\.\d+\n$")
        done = rung("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("run", "eval", "check", "show", "plugin", "worker", "exit status"):
            self.assertIn(word, done.stdout)

    def test_every_command_has_help(self):
        for command in ("run", "eval", "check", "show", "export", "plugin", "doctor", "worker"):
            done = rung(command, "--help")
            self.assertEqual(done.returncode, 0, command)
            self.assertIn(f"rung {command} ", done.stdout.split("\n")[0])

    def test_doctor_starts_what_is_there_and_says_what_is_missing(self):
        done = rung("doctor", "--quick", "--json", OPENAI_API_KEY="sk-not-to-be-shown", ANTHROPIC_API_KEY="")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        states = {device["name"]: device["state"] for device in report["devices"]}
        self.assertEqual(states["ptx"], "ready")
        self.assertTrue(all(plugin["state"] == "ready" for plugin in report["plugins"]), report["plugins"])
        self.assertIn("nvrtc", {plugin["name"] for plugin in report["plugins"]})
        keys = {key["reference"]: key["present"] for key in report["keys"]}
        self.assertEqual((keys["env:OPENAI_API_KEY"], keys["env:ANTHROPIC_API_KEY"]), (True, False))
        self.assertNotIn("not-to-be-shown", done.stdout + rung("doctor", "--quick", OPENAI_API_KEY="sk-not-to-be-shown").stdout)

    def test_doctor_says_when_no_run_can_work(self):
        with tempfile.TemporaryDirectory() as folder:
            bare = pathlib.Path(folder, "bin")
            bare.mkdir()
            shutil.copy(RUNG, bare / "rung")
            done = subprocess.run([str(bare / "rung"), "doctor", "--quick"], capture_output=True, text=True, timeout=60,
                                  env={"RUNG_DATA_DIR": f"{ROOT}/config", "PATH": os.environ["PATH"]})
            self.assertEqual(done.returncode, 3)
            self.assertIn("no device starts", done.stdout)

    def test_a_plugin_can_be_tried_alone(self):
        done = rung("plugin", "try", "device", "ptx", "--json")
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["state"], found["device"]["measures"]), (0, "ready", False))
        done = rung("plugin", "try", "device", "ptx", "--set", "thread=2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'threads'?", done.stderr)
        self.assertEqual(rung("plugin", "try", "devise", "ptx").returncode, 2)

    def test_wrong_usage_is_2_and_says_what_is_near(self):
        for arguments in ((), ("evl",), ("run",), ("run", "--nonsense", "x"), ("eval", TASK),
                          ("run", "a.cfg", "--resume", "b"), ("plugin", "frobnicate")):
            done = rung(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "", arguments)
            self.assertNotEqual(done.stderr, "", arguments)
        self.assertIn("did you mean 'eval'?", rung("evl").stderr)

    def test_files_that_are_wrong_are_told_with_their_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "p.cfg")
            path.write_text(f'task = "{TASK}";\nllm = ( {{ plugin = "catalog"; }} );\nserch = {{ rounds = 1; }};\n')
            done = rung("run", str(path), "--out", folder + "/run")
            self.assertEqual(done.returncode, 2)
            self.assertIn("p.cfg:3:", done.stderr)
            self.assertIn("did you mean 'search'?", done.stderr)
            self.assertFalse(os.path.exists(folder + "/run/journal.db"))
        self.assertEqual(rung("run", "/no/such.cfg").returncode, 2)
        self.assertEqual(rung("eval", TASK, "/no/such.cu").returncode, 2)


class Plugins(unittest.TestCase):
    def test_list_shows_the_tree(self):
        done = rung("plugin", "list", "--json")
        self.assertEqual(done.returncode, 0)
        found = {(f["kind"], f["name"]) for p in json.loads(done.stdout) for f in p.get("factories", [])}
        for each in (("llm", "catalog"), ("codegen", "cuda"), ("compiler", "nvrtc"), ("device", "ptx"),
                     ("device", "cuda"), ("reference", "ops"), ("verifier", "numeric"), ("timer", "model"),
                     ("search", "branching")):
            self.assertIn(each, found)

    def test_info_tells_every_option(self):
        done = rung("plugin", "info", "good", path=GOOD)
        self.assertEqual(done.returncode, 0)
        for word in ("org.rung.tests.good", "sha256", "serial-instance", "share", "default 0.25", "0 to 1",
                     "red | green", "secret"):
            self.assertIn(word, done.stdout)
        self.assertEqual(rung("plugin", "info", "no_such_plugin").returncode, 2)
        told = rung("plugin", "info", "mailbox").stdout
        self.assertIn("default 1h, 0s to 31536000s", told)
        self.assertNotIn("1h s", told)

    def test_bad_plugins_are_refused_by_name_and_the_others_told(self):
        done = rung("plugin", "list", "--json", path=f"{FAULTY}:{CRASHING}:{GOOD}")
        self.assertEqual(done.returncode, 0)
        plugins = {os.path.basename(p["path"]): p for p in json.loads(done.stdout)}
        for name, why in (("faulty_draft", "this rung has ABI"), ("faulty_slot", "lacks the operation 'check'"),
                          ("no_entry", "does not export"), ("crash_load", "while it was loaded (signal"),
                          ("crash_exit", "ended the process that loaded it")):
            error = plugins[f"verifier_{name}.so"]["error"]
            self.assertIn(why, error)
            self.assertIn(f"verifier_{name}.so", error)
        self.assertIn("factories", plugins["verifier_faulty_crash.so"])
        self.assertIn("factories", plugins["verifier_good.so"])

    def test_a_plugin_that_crashes_in_create_is_named(self):
        done = rung("eval", TASK, SOUND, "--device", "ptx", "--set", 'rungs=({plugin="faulty_crash";})',
                    path=self.alone("verifier_faulty_crash.so"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("faulty", done.stderr + done.stdout)

    def test_files_that_others_may_write_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(f"{GOOD}/verifier_good.so", folder)
            os.chmod(path, 0o777)
            done = rung("plugin", "info", path)
            self.assertEqual(done.returncode, 2)
            self.assertIn("chmod go-w", done.stdout + done.stderr)
            self.assertEqual(rung("plugin", "info", path, "--allow-insecure-plugins").returncode, 0)

    def alone(self, name):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(f"{FAULTY}/{name}", folder)
        return folder


class Work(unittest.TestCase):
    def test_eval_prints_one_object_and_its_status(self):
        done = rung("eval", TASK, SOUND, "--device", "ptx", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], report["code"]), ("accepted", None))
        self.assertEqual(report["time"]["kind"], "modelled")
        self.assertGreater(report["time"]["median_us"], 0)
        self.assertTrue(all(r["status"] in ("pass", "note") for r in report["rungs"]))
        done = rung("eval", TASK, f"{ROOT}/tests/exploits/zeros.cu", "--device", "ptx", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["verdict"], "rejected")

    def test_what_was_not_checked_is_not_called_accepted(self):
        done = rung("eval", TASK, SOUND, "--device", "ptx", "--only", "compile")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stderr.startswith("compiles (not checked)"), done.stderr)
        done = rung("eval", TASK, SOUND, "--device", "ptx", "--only", "bench", "--json")
        self.assertIs(json.loads(done.stdout)["checked"], False)
        done = rung("eval", TASK, SOUND, "--device", "ptx", "--only", "check", "--json")
        self.assertIs(json.loads(done.stdout)["checked"], True)

    def test_a_short_run_finds_and_shows_a_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "p.cfg").write_text(
                f'task = "{TASK}";\nllm = ( {{ plugin = "catalog"; }} );\n'
                'search = { plugin = "branching"; rounds = 1; ideas = 2; branches = 1; keep = 1; tune = 1; };\n'
                'workers = ( { device = "ptx"; count = 1; } );\n')
            done = rung("run", "p.cfg", "--out", "run", "--json", "--quiet", cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertIn("best", report)
            self.assertTrue(os.path.exists(f"{folder}/run/best.cu"))
            shown = rung("show", "run", cwd=folder)
            self.assertEqual(shown.returncode, 0)
            self.assertIn("modelled", shown.stdout)
            number = str(report["best"]["candidate"])
            one = rung("show", "run", number, cwd=folder)
            self.assertEqual(one.returncode, 0)
            self.assertIn("__global__", one.stdout)
            self.shows_what_changed(folder, json.loads(rung("show", "run", "--json", cwd=folder).stdout))
            self.reads_without_the_right_to_write(folder)
            again = rung("eval", TASK, "run/best.cu", "--device", "ptx", cwd=folder)
            self.assertEqual(again.returncode, 0, again.stderr)

    def shows_what_changed(self, folder, run):
        child = next(c for c in run["candidates"] if c["parents"])
        parent = child["parents"][0]
        text = rung("show", "run", str(child["number"]), cwd=folder).stdout
        for part in (f"changes since candidate {parent}", f"--- candidate {parent}\n+++ candidate {child['number']}",
                     child["sentence"], "numeric", "registers", "floor"):
            self.assertIn(part, text)
        full = json.loads(rung("show", "run", str(child["number"]), "--json", cwd=folder).stdout)
        self.assertTrue(full["diff"].startswith("--- "))
        self.assertEqual(full["report"]["rungs"][0]["rung"], "numeric")
        self.assertIn("__global__", full["bundle"]["files"][0]["text"])

    def reads_without_the_right_to_write(self, folder):
        """As another user, in a folder that nobody may write (root may write anywhere)."""
        if os.geteuid() != 0:
            self.skipTest("needs to become another user")
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(f"{folder}/run", f"{place}/a%run?")
            for path, mode in ((place, 0o755), (f"{place}/a%run?", 0o555)):
                os.chmod(path, mode)
            done = subprocess.run([RUNG, "show", f"{place}/a%run?"], capture_output=True, text=True, user=65534)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("accepted", done.stdout)

    def test_a_full_disk_ends_the_run_and_loses_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "p.cfg").write_text(
                f'task = "{TASK}";\nllm = ( {{ plugin = "catalog"; }} );\n'
                'search = { plugin = "branching"; rounds = 3; ideas = 4; branches = 2; };\n'
                'workers = ( { device = "ptx"; count = 1; } );\n')
            small = ["unshare", "--mount", "--map-root-user", "sh", "-c",
                     'mount -t tmpfs -o size=256k rung disk && "$0" run p.cfg --out disk/run --quiet; status=$?; '
                     '"$0" show disk/run; exit $status', RUNG]
            os.mkdir(f"{folder}/disk")
            probe = subprocess.run(["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "rung", "disk"],
                                   capture_output=True, cwd=folder)
            if probe.returncode:
                self.skipTest("can't mount a small disk here")
            done = subprocess.run(small, capture_output=True, text=True, cwd=folder, timeout=300)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("free some space and resume", done.stderr)
            self.assertRegex(done.stdout, r"(?m)^ +1 +0 +accepted")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
