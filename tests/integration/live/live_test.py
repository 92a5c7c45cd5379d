# SPDX-License-Identifier: Apache-2.0
"""The library inside running programs: what a job prints and returns is the job's, whatever happens."""
import os
import pathlib
import re
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time
import unittest

from support import INJECT, JOB, LIB, PROGRAMS, SIMGPU, Folder, job, run, same_identity


class LiveTest(unittest.TestCase):
    maxDiff = None

    def untouched(self, *arguments, faults="", both=None, **options):
        """Runs the job with and without gpudiag; the same to whoever looks. Returns the run with.
        `both` are variables of both runs."""
        bare = job(*arguments, preload=False, faults=faults, **(both or {}))
        options.update(both or {})
        with_us = job(*arguments, faults=faults, **options)
        self.assertEqual(with_us.status, bare.status, with_us)
        self.assertEqual(with_us.stdout, bare.stdout)
        self.assertEqual(with_us.stderr, bare.stderr)
        return with_us


class Ledger(LiveTest):
    def test_a_preloaded_job_prints_its_ledger_and_nothing_else_changes(self):
        with_us = self.untouched("train", 30)
        self.assertTrue(any(" iter " in line and "compute" in line for line in with_us.ours), with_us.ours)

    def test_the_injection_variable_alone_does_the_same(self):
        with_us = self.untouched(
            "train", 30, preload=False, CUDA_INJECTION64_PATH=INJECT, NVTX_INJECTION64_PATH=INJECT
        )
        self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)

    def test_every_iteration_has_a_line_of_json_whose_parts_add_up(self):
        with Folder() as folder:
            self.untouched("train", 30, GPUDIAG_DIR=folder.path)
            iterations = folder.iterations()
            self.assertEqual([i["label"] for i in iterations[1:-1]], [f"iter {n}" for n in range(1, 29)])
            for iteration in iterations:
                self.assertTrue(same_identity(iteration), iteration)
                self.assertTrue(iteration["valid"], iteration)
            self.assertEqual(sum(i["operations"] for i in iterations), 30 * 9)

    def test_a_recording_gives_the_very_iterations_of_the_run(self):
        command = pathlib.Path(os.environ.get("GPUDIAG_COMMAND", ""))
        if not command.is_file():
            self.skipTest("the gpudiag command is not built")
        with Folder() as folder:
            self.untouched("for", 1.5, GPUDIAG_DIR=folder.path, GPUDIAG_RECORD="on")
            recording = next(folder.path.glob("*.gpudiag"))
            live = next(folder.path.glob("*.jsonl")).read_bytes().splitlines()
            again = subprocess.run(
                [command, "analyze", recording, "--format", "jsonl"], capture_output=True, check=True
            ).stdout.splitlines()
            of = [[line for line in lines if b"gpudiag.iteration/1" in line] for lines in (live, again)]
            self.assertGreater(len(of[0]), 50)
            self.assertEqual(of[0], of[1])

    def test_two_hundred_threads_leave_the_iterations_valid(self):
        with Folder() as folder:
            self.untouched("many_threads", 200, GPUDIAG_DIR=folder.path, GPUDIAG_RECORD="on")
            invalid = [(i["label"], i["invalid_counts"]) for i in folder.iterations() if not i["valid"]]
            self.assertEqual(invalid, [])
            self.assertGreaterEqual(len(folder.iterations()), 38)

    def test_records_that_come_in_a_round_that_takes_long_are_not_of_another_clock(self):
        # Two hundred threads that never rest leave our thread so little that one round takes seconds; records may
        # be lost then, which is counted, but those that come are of now.
        with Folder() as folder:
            self.untouched("greedy_threads", 200, GPUDIAG_DIR=folder.path, GPUDIAG_RECORD="on")
            foreign = sum(i["invalid_counts"].get("foreign_clock", 0) for i in folder.iterations())
            said = [line["quality"]["defects"]["foreign_clock"] for line in folder.lines() if "quality" in line]
            self.assertEqual((foreign, sum(said)), (0, 0))

    def test_the_shares_of_every_line_add_up_as_printed(self):
        lines = [line for line in job("train", 60, GPUDIAG_LOG="every").ours if "compute" in line]
        self.assertEqual(len(lines), 60)
        for line in lines:
            shares, causes = line.split(" | idle ")
            parts = [float(word) for word in re.findall(r"(?:compute|comm|copy) ([0-9.]+)%", shares)]
            idle, _, names = causes.split(" | ")[0].partition("%")
            self.assertEqual((len(parts), round(sum(parts) + float(idle), 1)), (3, 100.0), line)
            named = [float(number) for number in re.findall(r" [a-z_]+ ([0-9.]+)", names)]
            self.assertEqual(round(sum(named), 1), float(idle), line)

    def test_log_every_prints_a_line_for_each_iteration(self):
        lines = job("train", 12, GPUDIAG_LOG="every").ours
        self.assertEqual(sum(" iter " in line for line in lines), 12, lines)

    def test_log_goes_to_a_file_or_nowhere(self):
        with Folder() as folder:
            log = folder.path / "ledger.log"
            self.assertEqual(job("train", 12, GPUDIAG_LOG=log).ours, [])
            self.assertIn(" iter ", log.read_text())
            self.assertEqual(job("train", 12, GPUDIAG_LOG="off").ours, [])

    def test_rank_names_lines_and_files(self):
        with Folder() as folder:
            lines = job("train", 12, GPUDIAG_DIR=folder.path, RANK=5).ours
            self.assertTrue(all(line.startswith("gpudiag rank 5 ") for line in lines), lines)
            self.assertEqual(len(list(folder.path.glob("rank5.pid*.jsonl"))), 1)

    def test_wrong_settings_are_said_and_cost_nothing_else(self):
        with_us = self.untouched("train", 12, GPUDIAG_CALLBACKS="maybe", GPUDIAG_RANGES="nonsense")
        self.assertIn(
            "gpudiag GPUDIAG_CALLBACKS=maybe: not understood; allowed: auto|on|off; using auto", with_us.ours
        )
        self.assertTrue(any("nonsense" in line for line in with_us.ours), with_us.ours)
        self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)

    def test_hostile_settings_neither_crash_nor_hold_up_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            for setting in (
                {"GPUDIAG_LOG": pipe},
                {"GPUDIAG_LOG": "/dev/full"},
                {"GPUDIAG_RANGES": "(" * 50000 + "=host"},
                {"GPUDIAG_ITERATION": "(" * 25000 + ")" * 25000},
                {"GPUDIAG_ITERATION": "(.*)*(.*)*(.*)*(.*)*q"},
            ):
                with self.subTest(setting=next(iter(setting))):
                    with_us = self.untouched("train", 12, timeout=20, **setting)
                    self.assertTrue(any(" iter " in line or " window " in line for line in with_us.ours), with_us.ours)

    def test_a_stderr_that_nobody_reads_or_that_is_closed_does_not_hold_up_the_job(self):
        alone = job("train", 12, preload=False).stdout
        with tempfile.TemporaryDirectory() as folder:
            lonely = pathlib.Path(folder) / INJECT.name
            shutil.copy(INJECT, lonely)
            for preload in (INJECT, lonely):
                for closed in (False, True):
                    with self.subTest(preload=preload.parent, closed=closed):
                        self.assertEqual(self.with_dead_stderr(preload, closed), (0, alone))

    @staticmethod
    def with_dead_stderr(preload, closed):
        """Status and stdout of a job whose stderr is a pipe that is full, or has no reader."""
        reader, writer = os.pipe()
        if closed:
            os.close(reader)
        else:
            os.set_blocking(writer, False)
            try:
                while os.write(writer, b"x" * 4096):
                    pass
            except BlockingIOError:
                os.set_blocking(writer, True)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(SIMGPU), LD_PRELOAD=str(preload))
        with subprocess.Popen(
            [JOB, "train", "12"], env=environment, stdout=subprocess.PIPE, stderr=writer, text=True
        ) as process:
            try:
                stdout, _ = process.communicate(timeout=20)
            finally:
                process.kill()
        return process.returncode, stdout

    def test_a_thread_with_the_smallest_stack_may_be_the_first_to_speak(self):
        self.untouched("small_stack")

    def test_a_folder_that_cannot_be_made_is_said_and_costs_nothing_else(self):
        with_us = self.untouched("train", 12, GPUDIAG_DIR="/proc/nowhere")
        self.assertTrue(any("GPUDIAG_DIR=/proc/nowhere: cannot be made" in line for line in with_us.ours), with_us.ours)

    def test_switched_off_it_is_silent(self):
        self.assertEqual(self.untouched("train", 12, GPUDIAG_ENABLED="off").ours, [])

    def test_the_first_records_are_said_once(self):
        lines = job("for", 1.0).ours
        self.assertEqual(sum("recording:" in line for line in lines), 1, lines)


class Ends(LiveTest):
    def test_exit_status_is_the_jobs(self):
        for code in (0, 7, 255):
            self.assertEqual(self.untouched("exit", code).status, code)

    def test_quick_exit_and_plain_exit_keep_theirs(self):
        self.assertEqual(self.untouched("quick_exit", 9).status, 9)
        self.assertEqual(self.untouched("_exit", 9).status, 9)

    def test_quick_exit_still_writes_the_last_iterations(self):
        with Folder() as folder:
            job("quick_exit", 0, GPUDIAG_DIR=folder.path)
            self.assertEqual(folder.lines()[-1]["event"], "end")

    def test_abort_and_signals_kill_as_before(self):
        self.assertEqual(self.untouched("abort").status, -signal.SIGABRT)
        for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGINT):
            self.assertEqual(self.untouched("raise", int(number)).status, -number)

    def test_the_jobs_signal_handlers_are_its_own(self):
        self.untouched("signals")

    def test_a_killed_job_leaves_all_but_its_last_second(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2):
            with Folder() as folder, self.subTest(signal=number):
                environment = dict(os.environ, LD_LIBRARY_PATH=str(SIMGPU), LD_PRELOAD=str(INJECT))
                environment["GPUDIAG_DIR"] = str(folder.path)
                process = subprocess.Popen(
                    [JOB, "for", "60"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                time.sleep(3)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), -number)
                text = next(folder.path.glob("*.jsonl")).read_text()
                complete = text[: text.rfind("\n") + 1]
                self.assertGreater(complete.count('"gpudiag.iteration/1"'), 10)

    def test_threads_that_still_launch_do_not_disturb_the_exit(self):
        for _ in range(3):
            self.untouched("threads")

    def test_a_static_object_may_launch_in_its_destructor(self):
        self.assertIn("late launch: done", self.untouched("static").stdout)

    def test_a_kernel_that_never_ends_does_not_keep_the_job(self):
        begin = time.monotonic()
        self.untouched("unfinished", faults="kernel:never_ends")
        self.assertLess(time.monotonic() - begin, 30)


class Children(LiveTest):
    def test_a_forked_child_is_left_alone(self):
        with Folder() as folder:
            self.untouched("fork", GPUDIAG_DIR=folder.path)
            self.assertEqual(len(list(folder.path.glob("*.jsonl"))), 1)

    def test_shells_and_tools_of_the_job_print_the_same(self):
        for command in (
            "echo hello; exit 4",
            "echo one | cat | tr o O",
            "env -i /bin/echo bare",
            "cd / && ls -d usr",
            "git --version 2>/dev/null || true",
            "sh -c 'sh -c \"kill -TERM $$\"'; echo $?",
        ):
            with self.subTest(command=command):
                self.untouched("shell", command)

    def test_a_32_bit_program_runs_as_before(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "exit42"
            program.write_bytes(static_32_bit_program(42))
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            try:
                status = subprocess.run([program]).returncode
            except OSError:
                self.skipTest("this kernel runs no 32-bit programs")
            if status != 42:
                self.skipTest("this kernel runs no 32-bit programs")
            self.assertEqual(run([program]).status, 42)

    def test_a_preload_costs_programs_without_cuda_no_library(self):
        done = run(["/bin/sh", "-c", "grep -c libgpudiag.so /proc/$$/maps"])
        self.assertEqual(done.stdout, "0\n")
        self.assertEqual(done.ours, [])


class Callbacks(LiveTest):
    """What a callback for iterations does must not be the job's end. (A job of simulated GPU and own library.)"""

    def outcome(self, mode, **variables):
        return run([PROGRAMS / "live_callbacks", mode], preload=False, LD_LIBRARY_PATH=f"{SIMGPU}:{LIB}",
                   GPUDIAG_LOG="off", **variables)

    def test_one_that_throws_is_called_once_and_the_job_goes_on(self):
        for mode, why in (("throws", "as it likes"), ("throws_a_number", "no std::exception")):
            done = self.outcome(mode)
            self.assertEqual((done.status, done.stdout), (5, "called once, failed 1, active 0\n"), done)
            self.assertEqual(done.ours, [f"gpudiag on_iteration: the callback threw ({why}) and is not called any more"])

    def test_one_that_starts_and_stops_sessions_is_told_so_and_holds_nothing_up(self):
        done = self.outcome("starts_and_stops")
        self.assertEqual((done.status, done.stdout), (5, "called often, failed 0, active 0\n"), done)
        # And not: that the last iterations were not ready within two seconds, since our thread waited for itself.
        self.assertEqual(["do nothing inside a callback" in line for line in done.ours], [True], done.ours)


class Surroundings(LiveTest):
    def test_an_odd_install_path_works(self):
        with tempfile.TemporaryDirectory() as folder:
            odd = pathlib.Path(folder) / "a path with spaces, and Ünïcode"
            odd.mkdir()
            for library in (INJECT, LIB / "libgpudiag.so.0"):
                shutil.copy(library, odd / library.name)
            inject = odd / INJECT.name
            with_us = self.untouched(
                "train", 12, preload=False, CUDA_INJECTION64_PATH=inject, NVTX_INJECTION64_PATH=inject
            )
            self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)

    def test_a_preload_without_its_library_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            lonely = pathlib.Path(folder) / INJECT.name
            shutil.copy(INJECT, lonely)
            with_us = self.untouched("train", 12, preload=False, LD_PRELOAD=lonely)
            self.assertEqual(len(with_us.ours), 1, with_us.ours)
            self.assertIn("cannot be loaded", with_us.ours[0])

    def test_the_users_own_injection_goes_first(self):
        theirs = {"CUDA_INJECTION64_PATH": "/nowhere/lib.so", "NVTX_INJECTION64_PATH": "/nowhere/lib.so"}
        with_us = self.untouched("train", 12, both=theirs)
        self.assertEqual(with_us.ours, [])

    def test_without_a_driver_nothing_is_said(self):
        done = run([PROGRAMS / "live_nocuda"], preload=False, LD_LIBRARY_PATH=str(LIB))
        self.assertEqual(done.status, 0, done)
        self.assertEqual(
            done.stdout, "start 1\nagain 1\nactive 1\nlast 0\nlast of nothing 0\nactive 0\n"
        )
        self.assertEqual((done.stderr, done.ours), ("", []))

    def test_sessions_restart_a_thousand_times_beside_eight_threads(self):
        done = run(
            [PROGRAMS / "live_restart", 1000],
            preload=False,
            timeout=500,
            LD_LIBRARY_PATH=f"{SIMGPU}:{LIB}",
            GPUDIAG_LOG="off",
        )
        self.assertEqual(done.status, 0, str(done)[:2000])
        self.assertEqual(done.stdout, "started 1000 of 1000, active 0\n")

    def test_linked_and_injected_copies_share_one_session(self):
        with tempfile.TemporaryDirectory() as other, Folder() as folder:
            for library in (INJECT, LIB / "libgpudiag.so.0"):
                shutil.copy(library, pathlib.Path(other) / library.name)
            done = run(
                [PROGRAMS / "live_restart", 3],
                preload=False,
                LD_PRELOAD=pathlib.Path(other) / INJECT.name,
                LD_LIBRARY_PATH=f"{SIMGPU}:{LIB}",
                GPUDIAG_DIR=folder.path,
            )
            self.assertEqual(done.stdout, "started 0 of 3, active 1\n", str(done)[:2000])
            self.assertEqual(len(list(folder.path.glob("*.jsonl"))), 1)
            # The linked copy's steps reached the session of the injected one.
            self.assertIn("step", {i["opened_by"] for i in folder.iterations()})

    def test_other_allocators_may_be_preloaded_before_and_after_us(self):
        found = [p for p in map(pathlib.Path, ALLOCATORS) if p.exists()]
        if not found:
            self.skipTest("neither jemalloc nor tcmalloc is installed")
        for allocator in found:
            for order in (f"{allocator}:{INJECT}", f"{INJECT}:{allocator}"):
                with self.subTest(order=order):
                    with_us = self.untouched("train", 12, preload=False, LD_PRELOAD=order)
                    self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)


ALLOCATORS = (
    "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
    "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
    "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
)


def static_32_bit_program(status):
    """An ELF file for i386 that exits with `status` and needs no loader."""
    base = 0x08048000
    code = b"\xb8\x01\0\0\0\xbb" + struct.pack("<I", status) + b"\xcd\x80"
    size = 52 + 32 + len(code)
    header = b"\x7fELF\x01\x01\x01" + bytes(9)
    header += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    return header + segment + code


if __name__ == "__main__":
    unittest.main()
