# SPDX-License-Identifier: Apache-2.0
"""Runs the gpudiag command as a user does. GPUDIAG_COMMAND names it, GPUDIAG_TEST_TOOLS the folder of
the helper programs, GPUDIAG_SCHEMAS the folder of the JSON Schemas."""

import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

import jsonschema

COMMAND = os.environ["GPUDIAG_COMMAND"]
TOOLS = pathlib.Path(os.environ["GPUDIAG_TEST_TOOLS"])
SCHEMAS = pathlib.Path(os.environ["GPUDIAG_SCHEMAS"])


def validate(kind, document):
    schema = json.loads((SCHEMAS / f"{kind}-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)


def trace(steps=5, kernel_name="gemm", rank=None):
    """A trace of torch.profiler: steps of a millisecond, each with ten launches."""
    events = []
    for step in range(steps):
        start = 1000 + step * 1000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9,
                       "tid": 9, "ts": start, "dur": 1000})
        for k in range(10):
            at, correlation = start + k * 90, step * 10 + k + 1
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9,
                           "tid": 9, "ts": at, "dur": 5, "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "kernel", "name": kernel_name, "pid": 0, "tid": 7,
                           "ts": at + 10, "dur": 70,
                           "args": {"correlation": correlation, "device": 0, "stream": 7,
                                    "context": 1}})
    document = {"traceEvents": events}
    if rank is not None:
        document["distributedInfo"] = {"rank": rank, "world_size": 8, "backend": "nccl"}
    return document


def frame_edges(recording):
    """Where the frames of a recording begin; see docs/recordings.md."""
    at = len(b"gpudiag.records/1\n")
    while at < len(recording):
        yield at
        at += 21 + struct.unpack_from("<I", recording, at + 5)[0]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def gpudiag(self, *arguments, environment=None, **options):
        variables = {k: v for k, v in os.environ.items() if not k.startswith("GPUDIAG_")}
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN"):
            variables.pop(name, None)
        variables.update(environment or {})
        return subprocess.run([COMMAND, *map(str, arguments)], cwd=self.folder, env=variables,
                              capture_output=True, timeout=60, check=False, **options)

    def write(self, name, content):
        path = self.folder / name
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def recording(self, name="rank3.gpudiag"):
        path = self.folder / name
        subprocess.run([TOOLS / "write_recording", path], check=True)
        return path

    def report(self, *arguments, status=0):
        result = self.gpudiag("analyze", *arguments, "--format", "json")
        self.assertEqual(result.returncode, status, result.stderr)
        document = json.loads(result.stdout)
        validate("report", document)
        return document


class Analyze(Case):
    def test_ATraceBecomesAReportThatFollowsItsSchema(self):
        report = self.report(self.write("trace.json", trace(rank=2)))
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [2])
        iterations = report["ranks"][0]["devices"][0]["iterations"]
        self.assertGreaterEqual(len(iterations), 5)
        for one in iterations:
            self.assertEqual(one["wall_ns"], one["compute_ns"] + one["communication_ns"] +
                             one["copy_ns"] + one["idle_ns"])
            self.assertEqual(one["idle_ns"], sum(one["idle"].values()))

    def test_ACompressedTraceGivesTheSameReport(self):
        plain = self.report(self.write("trace.json", trace()))
        packed = self.report(self.write("t.json.gz", gzip.compress(json.dumps(trace()).encode())))
        plain["ranks"][0]["source"] = packed["ranks"][0]["source"] = ""
        self.assertEqual(plain, packed)

    def test_JsonLinesFollowTheirSchemasAndCanBeAnalysedAgain(self):
        path = self.write("trace.json", trace())
        lines = self.gpudiag("analyze", path, "--format", "jsonl").stdout.splitlines()
        for line in lines:
            document = json.loads(line)
            validate(document["schema"].split(".")[1].split("/")[0], document)
        first = self.report(path)
        again = self.report(self.write("rank0.jsonl", b"\n".join(lines) + b"\n"))
        self.assertEqual(first["ranks"][0]["devices"], again["ranks"][0]["devices"])
        self.assertEqual(first["findings"], again["findings"])

    def test_TextNamesSharesAndVerdict(self):
        result = self.gpudiag("analyze", self.write("trace.json", trace()), "--steps")
        text = result.stdout.decode()
        self.assertEqual(result.returncode, 0)
        self.assertIn("gpudiag rank 0 iter ", text)
        self.assertRegex(text, r"compute +\d+\.\d %")
        self.assertIn("\nverdict: ", text)
        self.assertEqual(result.stderr, b"")

    def test_AnyNameOfAKernelGivesValidJson(self):
        document = json.dumps(trace(kernel_name="bad@name")).encode()
        path = self.write("trace.json", document.replace(b"bad@name", b"a\\u0001\\\"\x01\xff\\n"))
        self.report(path)
        for line in self.gpudiag("analyze", path, "--format", "jsonl").stdout.splitlines():
            json.loads(line)

    def test_ARecordingBecomesAReport(self):
        report = self.report(self.recording())
        rank = report["ranks"][0]
        self.assertEqual((rank["rank"], rank["host"], rank["finished"]), (3, "node7", True))
        self.assertEqual(rank["devices"][0]["name"], "Recorded GPU")
        self.assertEqual(report["origin_unix_ns"], "1736412345678901235")

    def test_ARecordingCutAnywhereKeepsWhatCouldBeRead(self):
        path = self.recording()
        whole = path.read_bytes()
        for part in (0.4, 0.6, 0.9, 0.99):
            path.write_bytes(whole[:int(len(whole) * part)])
            rank = self.report(path)["ranks"][0]
            self.assertFalse(rank["finished"])
            self.assertGreater(rank["quality"]["records"], 0)
            self.assertEqual(rank["quality"]["defects"]["truncated"], 1)

    def test_ARecordingCutAtAnyFrameOrPageGivesWhatIsThereAndSaysSo(self):
        path = self.recording()
        whole = path.read_bytes()
        cuts = {1, 15, 16, 17} | set(range(4096, len(whole), 4096))
        for edge in frame_edges(whole):
            cuts |= {edge - 1, edge, edge + 1}
        seen = 0
        for size in sorted(cut for cut in cuts if 0 < cut < len(whole)):
            path.write_bytes(whole[:size])
            result = self.gpudiag("analyze", path)
            text = " ".join(result.stdout.decode().split())
            if result.returncode == 1:
                self.assertLessEqual(size, len(b"gpudiag.records/1\n"))
                self.assertIn("is a recording that was cut before its first record", result.stderr.decode())
                continue
            self.assertEqual(result.returncode, 0, (size, result.stderr))
            self.assertIn("the job ended without closing its session", text, size)
            iterations = int((re.search(r"device 0.*?: (\d+) iteration", text) or [0, 0])[1])
            self.assertGreaterEqual(iterations, seen, size)
            seen = iterations
        self.assertGreaterEqual(seen, 5)

    def test_ADamagedRecordingSaysWhatWasLost(self):
        path = self.recording()
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
        quality = self.report(path)["ranks"][0]["quality"]
        self.assertEqual(quality["defects"]["broken_event"], 1)
        self.assertGreater(quality["defects"]["dropped"], 0)

    def test_AFolderHoldsARankPerFileInTheirOrder(self):
        for rank in (10, 9, 1):
            self.write(f"rank{rank}.json", trace())
        self.write("notes.txt", "not a trace")
        report = self.report(self.folder)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [1, 9, 10])

    def test_TwoFilesThatClaimOneRankAreToldApart(self):
        report = self.report(self.write("a.json", trace(rank=0)), self.write("b.json", trace(rank=0)))
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0, 1])
        self.assertEqual(report["ranks"][1]["notes"][0]["code"], "rank_changed")

    def test_OnlyCpuEventsAreNotAnIdleGpu(self):
        document = trace()
        document["traceEvents"] = [e for e in document["traceEvents"] if e["cat"] != "kernel"]
        self.assertEqual(self.report(self.write("trace.json", document))["verdict"], "no_gpu_activity")

    def test_WhatCannotBeReadIsNamedWithItsReason(self):
        for name, content, reason in (("empty.json", b"", "is empty"),
                                      ("text.json", b"hello", "neither a Kineto trace"),
                                      ("x.sqlite", b"SQLite format 3\0", "as exports of Nsight Systems do, but cannot"),
                                      ("job.nsys-rep", b"\1\2", "nsys export --type sqlite"),
                                      ("r.json", b'{"schema":"gpudiag.report/1"}', "is a report already")):
            path = self.write(name, content)
            result = self.gpudiag("analyze", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(reason, result.stderr.decode())
            self.assertIn(name, result.stderr.decode())
            self.assertEqual(result.stdout, b"")

    def export(self, name, processes=(100,), launches=200):
        """An export of Nsight Systems: each process launches on a device of its own."""
        path = self.folder / name
        with contextlib.closing(sqlite3.connect(path)) as file, file:
            file.executescript("""
                CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
                INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm');
                CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
                CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId, correlationId,
                                                         globalPid, shortName);
                CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid);""")
            for device, pid in enumerate(processes):
                process = (1 << 48) | (pid << 24)
                for i in range(launches):
                    at = i * 100_000
                    file.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,?,?,1)",
                                 (at, at + 5000, process | pid, i + 1))
                    file.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,?,1,7,?,?,2)",
                                 (at + 10_000, at + 80_000, device, i + 1, process))
                for step in range(launches // 20):
                    at = step * 2_000_000
                    file.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?)",
                                 (at, at + 1_999_000, f"step {step}", process | pid))
        return path

    def test_AnExportOfNsightSystemsIsOneRankAProcess(self):
        report = self.report(self.export("report.sqlite", processes=(300, 200)), "--iteration", "^step")
        self.assertEqual([(rank["rank"], rank["devices"][0]["device"]) for rank in report["ranks"]], [(0, 0), (1, 1)])
        for rank in report["ranks"]:
            iterations = rank["devices"][0]["iterations"]
            self.assertEqual(len(iterations), 10)
            self.assertEqual(iterations[4]["label"], "step 4")
            self.assertEqual(iterations[4]["compute_ns"], 20 * 70_000)
        notes = report["ranks"][0]["notes"]
        self.assertEqual({note["code"] for note in notes}, {"not_in_file"})
        self.assertIn("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION is absent", " ".join(note["text"] for note in notes))

    def test_AnExportIsKnownByItsContentAndNotByItsName(self):
        path = self.export("report.sqlite")
        self.assertEqual(len(self.report(path.rename(self.folder / "report.json"))["ranks"]), 1)

    def test_AFolderMayHoldExportsAndTracesOfPyTorch(self):
        (self.folder / "a").mkdir()
        self.write("a/rank5.json", trace(rank=5))
        self.export("a/report.sqlite", processes=(100, 200)).chmod(0o444)
        (self.folder / "a/report.nsys-rep").write_bytes(b"\1")
        report = self.report("a")
        self.assertEqual(sorted(rank["rank"] for rank in report["ranks"]), [0, 1, 5])
        self.assertEqual(sorted(p.name for p in (self.folder / "a").iterdir()),
                         ["rank5.json", "report.nsys-rep", "report.sqlite"])  # and nothing of the database's

    def test_AFolderOfReportsThatNobodyExportedIsToldHow(self):
        (self.folder / "a").mkdir()
        (self.folder / "a/job.nsys-rep").write_bytes(b"\1")
        result = self.gpudiag("analyze", "a")
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn("nsys export --type sqlite a/job.nsys-rep", result.stderr.decode())

    def test_ACutExportGivesWhatIsThereAndSaysSo(self):
        path = self.export("report.sqlite", launches=2000)
        path.write_bytes(path.read_bytes()[:-20_000])
        report = self.report(path)
        self.assertEqual(report["ranks"][0]["quality"]["defects"]["truncated"], 1)

    def test_AMissingFileAndAnEmptyFolderAreNamed(self):
        result = self.gpudiag("analyze", self.folder / "nowhere.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("nowhere.json: no such file", result.stderr.decode())
        result = self.gpudiag("analyze", self.folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("no trace", result.stderr.decode())

    def test_OneBadInputDoesNotCostTheOthers(self):
        good = self.write("rank0.json", trace())
        report = self.report(good, self.write("bad.json", b"hello"), status=3)
        self.assertEqual(len(report["ranks"]), 1)

    def test_TheReportGoesIntoAFile(self):
        path = self.write("trace.json", trace())
        result = self.gpudiag("analyze", path, "--format", "json", "-o", "out.json")
        self.assertEqual((result.returncode, result.stdout), (0, b""))
        validate("report", json.loads((self.folder / "out.json").read_text(encoding="utf-8")))
        result = self.gpudiag("analyze", path, "-o", "no/such/folder/out.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write", result.stderr.decode())
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["out.json", "trace.json"])

    def test_AFolderOfRunFoldersIsAnsweredWithTheirNames(self):
        for name in ("run-a", "run-b", "empty"):
            (self.folder / "runs" / name).mkdir(parents=True)
        for name in ("run-a", "run-b"):
            self.write(f"runs/{name}/rank0.json", trace())
        result = self.gpudiag("analyze", "runs")
        self.assertEqual((result.returncode, result.stdout), (1, b""))
        self.assertIn("but in folders inside it: runs/run-a, runs/run-b; name the one", result.stderr.decode())

    def test_ACommandThatThereIsNotIsNamedWithThoseThereAre(self):
        result = self.gpudiag("bogus", "x")
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertEqual(result.stderr.decode(),
                         "gpudiag: there is no command 'bogus'; there are run, analyze and env\n")

    def test_AnUnknownOptionIsNamedWhateverElseIsMissing(self):
        for arguments in (["--bogus"], ["--bogus=3", "--", "true"]):
            result = self.gpudiag("run", *arguments)
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (2, b"", b"gpudiag: there is no option --bogus of `gpudiag run`; `gpudiag run --help` says more\n"))

    def test_AReaderThatWantsNoMoreEndsItQuietly(self):
        path = self.write("trace.json", trace(steps=2000))
        for ignored in (False, True):
            reader, writer = os.pipe()
            child = subprocess.Popen([COMMAND, "analyze", path, "--format", "json"], stdout=writer,
                                     stderr=subprocess.PIPE, restore_signals=not ignored)
            os.close(writer)
            self.assertTrue(os.read(reader, 10))
            os.close(reader)
            _, said = child.communicate(timeout=60)
            self.assertEqual((child.returncode, said), (-signal.SIGPIPE, b""), ignored)

    def test_ProgressOnATerminalLeavesNothingBehind(self):
        paths = [self.write(f"rank{i}.{'x' * 100}.json", trace(steps=300)) for i in range(3)]
        words = " ".join([COMMAND, "analyze", *map(str, paths)])
        if shutil.which("script") is None:
            self.skipTest("no script(1) here to make a terminal")
        done = subprocess.run(["script", "-qec", "stty cols 70; " + words, "/dev/null"], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=True)
        raw = done.stdout.decode()
        self.assertIn("100 %  file 3 of 3", raw)
        shown = []
        for line in raw.replace("\r\n", "\n").split("\n"):
            for piece in line.split("\r\x1b[K"):
                self.assertLess(len(piece), 121)
                if piece.startswith("["):
                    self.assertLess(len(piece), 70)
            shown.append(line.split("\r\x1b[K")[-1])
        text = "\n".join(shown)
        self.assertNotIn("file 1 of", text)
        self.assertNotIn("\x1b", text)
        plain = self.gpudiag("analyze", *paths).stdout.decode()
        self.assertEqual(text.split(), plain.split())

    def test_WrongUsageIsStatusTwo(self):
        for arguments in ((), ("analyze",), ("analyze", "x", "--format", "xml"), ("fly",),
                          ("analyze", "--moon", "x"), ("run",)):
            self.assertEqual(self.gpudiag(*arguments).returncode, 2, arguments)

    def test_ARuleThatCannotBeUsedIsWrongUsage(self):
        path = self.write("trace.json", trace())
        for option, value in (("--ranges", "x"), ("--ranges", "[=host"), ("--ranges", "x=nonsense"),
                              ("--ranges", "a=host;x"), ("--ranges", "(" * 50000 + "=host"),
                              ("--iteration", "["), ("--iteration", "(" * 50000)):
            result = self.gpudiag("analyze", str(path), option, value)
            self.assertEqual((result.returncode, result.stdout), (2, b""), (option, value[:20]))
            kind = rb"range rule" if option == "--ranges" else rb"GPUDIAG_ITERATION"
            self.assertRegex(result.stderr, rb"^gpudiag: " + kind + rb" '")
        accepted = self.gpudiag("analyze", str(path), "--ranges", "fetch_.*=data_loading;dump=checkpoint")
        self.assertEqual((accepted.returncode, accepted.stderr), (0, b""))

    def test_HelpAndVersionAreThere(self):
        self.assertRegex(self.gpudiag("--version").stdout.decode(), r"^gpudiag \d+\.\d+\.\d+\n$")
        for command in ("analyze", "run", "env"):
            result = self.gpudiag(command, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn("Examples:", result.stdout.decode())
        self.assertIn("GPUDIAG_CALLBACKS", self.gpudiag("run", "--help").stdout.decode())

    def test_ARuleIsOneWordAndWhatFollowsIsAPath(self):
        path = self.write("trace.json", trace())
        result = self.gpudiag("analyze", "--ranges", "a=sync", path, "--format", "json")
        self.assertEqual(result.returncode, 0)


class Run(Case):
    """Jobs of /bin/sh; one that 'uses CUDA' copies lines into GPUDIAG_DIR as a session would."""

    def run_job(self, script, *options, **keywords):
        return self.gpudiag("run", *options, "--", "/bin/sh", "-c", script, **keywords)

    def lines(self):
        path = self.write("trace.in", trace())
        return self.write("lines.in", self.gpudiag("analyze", path, "--format", "jsonl").stdout)

    def test_TheExitStatusIsTheJobs(self):
        for status in (0, 1, 7, 125, 255):
            self.assertEqual(self.run_job(f"exit {status}").returncode, status)

    def test_AFolderThatNobodyAskedForDoesNotStopTheJobWhereItCannotBeWritten(self):
        result = subprocess.run([COMMAND, "run", "--", "/bin/sh", "-c", "echo ran; exit 4"], cwd="/proc",
                                env=dict(os.environ, TMPDIR=str(self.folder)), capture_output=True, timeout=60, check=False)
        self.assertEqual((result.returncode, result.stdout), (4, b"ran\n"), result.stderr)
        self.assertIn(f"cannot write into /proc: the ledger goes into {self.folder}/gpudiag-", result.stderr.decode())

    def test_AJobThatDiesBySignalIsReportedAsSuch(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGHUP):
            self.assertEqual(self.run_job(f"kill -{number.value} $$").returncode, -number)

    def signalled(self, script, number):
        process = subprocess.Popen([COMMAND, "run", "--", "/bin/sh", "-c", script], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(number)
        process.communicate(timeout=30)
        return process.returncode

    def test_ASignalToUsReachesTheJob(self):
        for number, name in ((signal.SIGTERM, "TERM"), (signal.SIGUSR1, "USR1"), (signal.SIGINT, "INT")):
            script = f"trap 'exit 5' {name}; echo ready; while :; do sleep 0.05; done"
            self.assertEqual(self.signalled(script, number), 5)

    def test_AJobThatASignalEndsEndsUsLikewise(self):
        self.assertEqual(self.signalled("echo ready; exec sleep 30", signal.SIGTERM), -signal.SIGTERM)

    def test_StdinStdoutAndStderrAreTheJobs(self):
        result = self.run_job("cat; echo out; echo err >&2", input=b"in\n")
        self.assertEqual(result.stdout, b"in\nout\n")
        others = [l for l in result.stderr.splitlines() if not l.startswith(b"gpudiag ")]
        self.assertEqual(others, [b"err"])

    def test_AJobWithoutCudaIsToldSoAndLeavesNothingBehind(self):
        result = self.run_job("true")
        self.assertIn(b"gpudiag run: no process of the job used CUDA", result.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_ACommandThatCannotBeStartedHasTheShellsStatus(self):
        self.assertEqual(self.gpudiag("run", "--", "no-such-command-here").returncode, 127)
        plain = self.write("plain.txt", "no program")
        self.assertEqual(self.gpudiag("run", "--", plain).returncode, 126)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["plain.txt"])

    def test_TheJobFindsTheInjectionInItsEnvironment(self):
        result = self.run_job('echo "$CUDA_INJECTION64_PATH $NVTX_INJECTION64_PATH $LD_PRELOAD"')
        cuda, nvtx = result.stdout.decode().split()
        self.assertEqual(cuda, nvtx)
        self.assertTrue(cuda.endswith("libgpudiag_inject.so"), cuda)
        self.assertTrue(os.path.exists(cuda))

    def test_AnInjectionOfTheUsersIsKeptAndSaid(self):
        result = self.run_job('echo "$CUDA_INJECTION64_PATH"',
                              environment={"CUDA_INJECTION64_PATH": "/opt/nsys.so"})
        self.assertEqual(result.stdout, b"/opt/nsys.so\n")
        self.assertIn(b"CUDA_INJECTION64_PATH=/opt/nsys.so is set by something else", result.stderr)

    def test_NcclIsToldToLoadGpudiagOnRequestAlone(self):
        for options, environment, wanted in (((), {}, b""), (("--nccl",), {}, b"libgpudiag_inject.so"),
                                             ((), {"GPUDIAG_NCCL": "on"}, b"libgpudiag_inject.so"),
                                             (("--nccl", "off"), {"GPUDIAG_NCCL": "on"}, b"")):
            result = self.run_job('echo "${NCCL_PROFILER_PLUGIN##*/}"', *options, environment=environment)
            self.assertEqual(result.stdout.strip(), wanted, (options, environment, result.stderr))

    def test_APluginOfNcclThatTheUserHasSetIsKeptAndSaid(self):
        result = self.run_job('echo "$NCCL_PROFILER_PLUGIN"', "--nccl", "on", environment={"NCCL_PROFILER_PLUGIN": "mine"})
        self.assertEqual(result.stdout, b"mine\n")
        self.assertIn(b"NCCL_PROFILER_PLUGIN=mine is set by something else", result.stderr)

    def test_OptionsBecomeTheJobsSettings(self):
        result = self.run_job('echo "$GPUDIAG_LOG $GPUDIAG_RECORD $GPUDIAG_BUDGET $GPUDIAG_DIR"',
                              "--log", "every", "--record", "--budget", "1", "--dir", "ledger",
                              environment={"GPUDIAG_LOG": "off"})
        self.assertEqual(result.stdout.decode().split(),
                         ["every", "on", "1", str(self.folder / "ledger")])

    def test_AWrongSettingIsRefusedBeforeTheJobStarts(self):
        result = self.run_job("echo started", "--callbacks", "perhaps")
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertIn(b"GPUDIAG_CALLBACKS=perhaps: not understood; allowed: auto|on|off\n", result.stderr)

    def test_ARuleThatCannotBeUsedIsRefusedBeforeTheJobStarts(self):
        for option in ("--ranges", "--iteration"):
            result = self.run_job("echo started", option, "(" * 50000)
            self.assertEqual((result.returncode, result.stdout), (2, b""))
            self.assertIn(b" '((((", result.stderr)

    def test_ARegexThatIsNoneIsSaidInWords(self):
        result = self.run_job("echo started", "--iteration", "(")
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertEqual(result.stderr.decode().splitlines()[0],
                         "gpudiag run: GPUDIAG_ITERATION '(' is no regular expression: a parenthesis has no partner")

    def test_ARefusedSettingIsNotSaidToBeReplaced(self):
        result = self.run_job("echo started", "--budget", "never")
        self.assertEqual((result.returncode, result.stdout), (2, b""))
        self.assertEqual(result.stderr.decode().splitlines()[0],
                         "gpudiag run: GPUDIAG_BUDGET=never: not understood; allowed: a number from 0.1 to 100")

    def test_AnOptionWithoutItsValueDoesNotSwallowTheDashes(self):
        for option in ("--log", "--dir", "--budget"):
            result = self.gpudiag("run", option, "--", "/bin/echo", "started")
            self.assertEqual((result.returncode, result.stdout), (2, b""), option)
            self.assertIn(b"needs a value", result.stderr)
            self.assertTrue(result.stderr.startswith(b"gpudiag: " + option.encode()), result.stderr)

    def test_RecordTakesAValueOrNone(self):
        for given, expected in ((["--record"], "on"), (["--record", "on"], "on"), (["--record", "off"], "off"),
                                (["--record=on"], "on"), ([], "")):
            result = self.run_job('echo "$GPUDIAG_RECORD"', *given, "--dir", "ledger")
            self.assertEqual((result.returncode, result.stdout.decode().strip()), (0, expected), result.stderr)

    def test_AJobWithGpudiagSwitchedOffIsNotSaidToUseNoCuda(self):
        for given in ({"--enabled": "off"}, {}):
            result = self.run_job("true", *[word for pair in given.items() for word in pair],
                                  environment={} if given else {"GPUDIAG_ENABLED": "off"})
            self.assertIn(b"nothing was recorded, since gpudiag is switched off", result.stderr)
            self.assertNotIn(b"used CUDA", result.stderr)

    def test_AJobUnderAnotherToolIsNotSaidToUseNoCuda(self):
        result = self.run_job("true", environment={"CUDA_INJECTION64_PATH": "/opt/nsys.so"})
        self.assertIn(b"nothing was recorded, since another tool has the driver's injection", result.stderr)
        self.assertNotIn(b"used CUDA", result.stderr)

    def test_AJobThatDiedBeforeItsFirstIterationIsSaidSo(self):
        lines = self.lines()
        result = self.run_job(f"head -n 1 {lines} > $GPUDIAG_DIR/rank0.pid1234567.jsonl; kill -9 $$",
                              "--dir", "ledger")
        self.assertNotIn(b"good of 0", result.stderr)
        text = " ".join(result.stderr.decode().replace("gpudiag ", "").split())
        self.assertIn("before its first iteration had been written", text)
        self.assertIn("verdict: no_gpu_activity: nothing was recorded: the job ended", text)

    def test_TheReportIsMadeFromWhatTheJobWrote(self):
        result = self.run_job(f"cp {self.lines()} $GPUDIAG_DIR/rank0.pid1234567.jsonl", "--dir", "ledger")
        self.assertEqual(result.returncode, 0)
        report = json.loads((self.folder / "ledger/report.json").read_text(encoding="utf-8"))
        validate("report", report)
        self.assertEqual(len(report["ranks"]), 1)
        for line in result.stderr.splitlines():
            self.assertTrue(line.startswith(b"gpudiag "), line)
        self.assertIn(b"gpudiag verdict: ", result.stderr)
        self.assertIn(b"ledger/report.json", result.stderr)

    def test_FilesOfAnEarlierRunAreLeftOut(self):
        (self.folder / "ledger").mkdir()
        shutil.copy(self.lines(), self.folder / "ledger/rank0.pid1.jsonl")
        self.run_job(f"cp {self.lines()} $GPUDIAG_DIR/rank7.pid1234567.jsonl", "--dir", "ledger")
        report = json.loads((self.folder / "ledger/report.json").read_text(encoding="utf-8"))
        self.assertEqual(len(report["ranks"]), 1)
        self.assertEqual(report["ranks"][0]["source"], "trace.in")

    def test_AReaderOfStderrThatWentAwayCostsNeitherReportNorStatus(self):
        lines = self.lines()
        read_end, write_end = os.pipe()
        os.close(read_end)
        job = f"cat {lines} > $GPUDIAG_DIR/rank0.pid1234567.jsonl; exit 5"
        done = subprocess.run([COMMAND, "run", "--dir", "ledger", "--", "/bin/sh", "-c", job], cwd=self.folder,
                              stderr=write_end, timeout=60, check=False)
        os.close(write_end)
        self.assertEqual(done.returncode, 5)
        self.assertTrue((self.folder / "ledger/report.json").exists())

    def test_AKilledJobsLinesAreReportedButTheLastThatWasCut(self):
        lines = self.lines()
        size = lines.stat().st_size - 600
        result = self.run_job(f"head -c {size} {lines} > $GPUDIAG_DIR/rank0.pid1234567.jsonl; kill -9 $$",
                              "--dir", "ledger")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        rank = json.loads((self.folder / "ledger/report.json").read_text(encoding="utf-8"))["ranks"][0]
        self.assertFalse(rank["finished"])
        self.assertEqual(rank["quality"]["defects"]["truncated"], 1)
        self.assertGreater(len(rank["devices"][0]["iterations"]), 1)

    def test_AWorkerThatOutlivesTheLauncherIsWaitedFor(self):
        lines = self.lines()
        # The background shell's pid is in the file's name, as a session names its file.
        worker = (f"f=$GPUDIAG_DIR/rank0.pid$$.jsonl; head -n 1 {lines} > $f; sleep 0.5; "
                  f"tail -n +2 {lines} >> $f")
        script = f"sh -c '{worker}' >/dev/null 2>&1 & sleep 0.2; exit 3"
        result = self.run_job(script, "--dir", "ledger")
        self.assertEqual(result.returncode, 3)
        rank = json.loads((self.folder / "ledger/report.json").read_text(encoding="utf-8"))["ranks"][0]
        self.assertTrue(rank["finished"])

    def test_AFolderThatCannotBeWrittenIsRefused(self):
        self.write("file", "")
        result = self.run_job("echo started", "--dir", "file/sub")
        self.assertEqual((result.returncode, result.stdout), (125, b""))
        self.assertIn(b"choose another folder", result.stderr)

    def test_SimulationRefusesAStaticRuntimeAndNamesTheFix(self):
        if not (pathlib.Path(COMMAND).parent.parent / "lib/simgpu").is_dir():
            self.skipTest("built without the simulated GPU")
        result = self.gpudiag("run", "--simulate", "--", TOOLS / "static_cudart_lookalike")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"nvcc -cudart shared", result.stderr)

    def test_SimulationPutsItsLibrariesFirst(self):
        simgpu = pathlib.Path(COMMAND).parent.parent / "lib/simgpu"
        if not simgpu.is_dir():
            self.skipTest("built without the simulated GPU")
        result = self.run_job('echo "$LD_LIBRARY_PATH"', "--simulate",
                              environment={"LD_LIBRARY_PATH": "/before"})
        self.assertEqual(result.stdout.decode(), f"{simgpu.resolve()}:/before\n")


class Env(Case):
    def test_AShellCanEvaluateWhatEnvPrints(self):
        printed = self.gpudiag("env", "--dir", "it's here", "--log", "off").stdout.decode()
        shell = subprocess.run(["/bin/sh", "-c", printed + 'echo "$GPUDIAG_DIR|$GPUDIAG_LOG|$CUDA_INJECTION64_PATH"'],
                               capture_output=True, check=True, cwd=self.folder, env={"PATH": os.environ["PATH"]})
        folder, log, injection = shell.stdout.decode().strip().split("|")
        self.assertEqual((folder, log), ("it's here", "off"))
        self.assertTrue(os.path.exists(injection))

    def test_ContainersGetTheirOwnForms(self):
        docker = self.gpudiag("env", "--format", "docker").stdout.decode()
        self.assertIn("--env CUDA_INJECTION64_PATH=/", docker)
        self.assertRegex(docker, r"--volume \S+:ro\n")
        pod = self.gpudiag("env", "--format", "k8s", "--iteration", 'a"b').stdout.decode()
        self.assertIn('- name: GPUDIAG_ITERATION\n  value: "a\\"b"\n', pod)
        self.assertNotIn("ledger", docker + pod)

    def test_AContainerSeesTheFolderUnderItsOwnName(self):
        ledger = self.folder / "a b"
        docker = self.gpudiag("env", "-f", "docker", "--dir", "a b").stdout.decode()
        self.assertIn(f"--volume '{ledger}:{ledger}'\n", docker)
        self.assertIn(f"--env 'GPUDIAG_DIR={ledger}'\n", docker)
        words = self.gpudiag("env", "-f", "docker", "--dir", "/data/ledger").stdout.decode().split()
        self.assertIn("/data/ledger:/data/ledger", words)
        self.assertIn("GPUDIAG_DIR=/data/ledger", words)
        pod = self.gpudiag("env", "-f", "k8s", "--dir", "/data/ledger").stdout.decode()
        self.assertIn('- name: GPUDIAG_DIR\n  value: "/data/ledger"\n', pod)
        self.assertIn('- name: gpudiag-ledger\n  mountPath: "/data/ledger"\n', pod)
        self.assertIn('- name: gpudiag-ledger\n  hostPath:\n    path: "/data/ledger"\n', pod)

    def test_AWrongSettingIsRefused(self):
        result = self.gpudiag("env", "--budget", "never")
        self.assertEqual((result.returncode, result.stdout), (2, b""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
