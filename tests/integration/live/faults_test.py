# SPDX-License-Identifier: Apache-2.0
"""Every fault that the simulated GPU can play, against the library: the job never notices, and the
ledger says what it does not know."""
import unittest

from support import Folder, same_identity
from live_test import LiveTest


class Faults(LiveTest):
    def faulty(self, faults, *arguments, **options):
        """A run with faults, compared with the same without us; its lines of JSON and its own lines."""
        with Folder() as folder:
            with_us = self.untouched(*(arguments or ("train", 30)), faults=faults, GPUDIAG_DIR=folder.path, **options)
            for iteration in folder.iterations():
                self.assertTrue(same_identity(iteration), iteration)
            return with_us, folder.lines()

    @staticmethod
    def notes(lines):
        return {line["code"]: line["text"] for line in lines if line.get("event") == "note"}

    @staticmethod
    def iterations(lines):
        return [line for line in lines if line["schema"] == "gpudiag.iteration/1"]

    @staticmethod
    def end(lines):
        return [line for line in lines if line.get("event") == "end"][0]

    def test_a_refused_subscriber_is_said_once_and_the_ledger_goes_on(self):
        for fault in ("cuptiSubscribe_v2:error=39", "cuptiSubscribe_v2:error=12"):
            with_us, lines = self.faulty(fault, GPUDIAG_CALLBACKS="on")
            self.assertIn(fault.rsplit("=", 1)[1], self.notes(lines)["callbacks_off"])
            self.assertEqual(sum("callbacks off" in line for line in with_us.ours), 1, with_us.ours)
            self.assertTrue(all(i["valid"] for i in self.iterations(lines)))
            self.assertGreater(len(self.iterations(lines)), 20)

    def test_the_holder_of_the_subscriber_is_named(self):
        _, lines = self.faulty("cupti.foreign_subscriber:tool=Kineto", GPUDIAG_CALLBACKS="on")
        self.assertIn("Kineto", self.notes(lines)["callbacks_off"])
        self.assertIn("39", self.notes(lines)["callbacks_off"])

    def test_callbacks_off_asks_for_no_subscriber(self):
        _, lines = self.faulty("cuptiSubscribe_v2:error=39;cuptiSubscribe:error=39", GPUDIAG_CALLBACKS="off")
        self.assertNotIn("callbacks_off", self.notes(lines))

    def test_callbacks_on_and_off_see_the_same_calls(self):
        counts = {}
        for mode in ("on", "off"):
            _, lines = self.faulty("", GPUDIAG_CALLBACKS=mode)
            counts[mode] = sum(
                e["count"] for i in self.iterations(lines) for e in i["evidence"] if e["what"] == "cudaDeviceSynchronize"
            )
        self.assertEqual(counts["on"], counts["off"])
        self.assertEqual(counts["on"], 30)

    def test_another_tool_is_noticed_and_we_stand_aside(self):
        with_us, lines = self.faulty("", NSYS_PROFILING_SESSION_ID="1")
        self.assertIn("Nsight Systems", self.notes(lines)["stood_aside"])
        self.assertEqual(self.iterations(lines), [])
        self.assertEqual(len(with_us.ours), 1, with_us.ours)

    def test_each_failing_function_of_cupti_is_survived(self):
        for function in (
            "cuptiActivityRegisterCallbacks",
            "cuptiActivityEnable",
            "cuptiActivityDisable",
            "cuptiActivityFlushAll",
            "cuptiActivityGetNextRecord",
            "cuptiGetTimestamp",
            "cuptiActivityGetNumDroppedRecords",
            "cuptiGetVersion",
            "cuptiGetCallbackName",
            "cuptiSetThreadIdType",
            "cuptiActivityEnableRuntimeApi",
            "cuptiActivityEnableDriverApi",
            "cuptiSubscribe_v2",
            "cuptiEnableCallback",
            "cuptiUnsubscribe",
        ):
            with self.subTest(function=function):
                self.faulty(f"{function}:error=999", "train", 10, GPUDIAG_CALLBACKS="on")

    def test_buffers_that_cupti_cannot_read_are_said_once_and_counted(self):
        with_us, lines = self.faulty("cuptiActivityGetNextRecord:error=999", "train", 10)
        self.assertEqual(len([line for line in with_us.ours if "cannot read records" in line]), 1, with_us.ours)
        self.assertGreater(lines[-1]["quality"]["defects"]["dropped"], 0)

    def test_each_kind_that_cannot_be_enabled_is_survived(self):
        for nth in range(1, 8):
            with self.subTest(nth=nth):
                with_us, _ = self.faulty(f"cuptiActivityEnable:nth={nth},error=999", "train", 10)
                self.assertGreaterEqual(len(with_us.ours), 1)

    def test_failing_calls_of_the_job_fail_as_before(self):
        for fault in ("cudaMalloc:nth=1,error=2", "cudaMemcpy:every=3,error=1", "cudaLaunchKernel:nth=20,error=4"):
            with self.subTest(fault=fault):
                self.faulty(fault)

    def test_dropped_records_are_counted_and_not_guessed(self):
        _, lines = self.faulty("record.drop:every=50")
        self.assertGreater(sum(not i["valid"] for i in self.iterations(lines)), 0)
        end = self.end(lines)
        self.assertGreater(end["quality"]["defects"]["dropped"] + end["quality"]["defects"]["no_operation"], 0)

    def test_records_without_times_make_their_iteration_invalid(self):
        for fault, reason in (
            ("record.zero_time:nth=100,name=^CONCURRENT_KERNEL", "untimed"),
            ("record.negative:nth=100,name=^CONCURRENT_KERNEL", "negative"),
            ("record.foreign_clock:nth=100,name=^CONCURRENT_KERNEL", "foreign_clock"),
        ):
            with self.subTest(fault=fault):
                _, lines = self.faulty(fault)
                reasons = [r for i in self.iterations(lines) for r in i["invalid_reasons"]]
                self.assertIn(reason, reasons)
                self.assertGreater(sum(i["valid"] for i in self.iterations(lines)), 20)

    def test_records_out_of_order_change_nothing(self):
        _, lines = self.faulty("record.out_of_order")
        self.assertTrue(all(i["valid"] for i in self.iterations(lines)))
        self.assertEqual(sum(i["operations"] for i in self.iterations(lines)), 270)

    def test_late_records_are_waited_for(self):
        _, lines = self.faulty("record.late:every=3,delay_ms=150", "for", 1.5)
        self.assertGreater(sum(i["valid"] for i in self.iterations(lines)), 10)

    def test_half_of_the_buffers_stolen_is_noticed(self):
        _, lines = self.faulty("buffer.steal:every=2", "for", 2)
        self.assertIn("buffers_missing", self.notes(lines))
        self.assertGreater(self.end(lines)["quality"]["defects"]["dropped"], 0)

    def test_all_buffers_stolen_is_noticed(self):
        _, lines = self.faulty("buffer.steal", "for", 1)
        self.assertIn("buffers_missing", self.notes(lines))
        self.assertEqual([i for i in self.iterations(lines) if i["operations"]], [])

    def test_buffers_written_after_stop_hurt_nobody(self):
        self.faulty("buffer.after_stop:delay_ms=200", "threads")

    def test_no_kernel_records_is_said_and_not_called_idle(self):
        with_us, lines = self.faulty("wsl", "for", 5)
        self.assertTrue(
            "no_gpu_activity" in self.notes(lines) or not any(i["valid"] for i in self.iterations(lines)), with_us.ours
        )

    def test_device_clocks_that_drift_keep_the_identity(self):
        for fault in ("clock:ppm=200", "clock:offset_ns=-40000"):
            with self.subTest(fault=fault):
                self.faulty(fault, "for", 1.5)

    def test_a_slow_kernel_is_compute(self):
        _, lines = self.faulty("kernel:nth=100,delay_ns=200000000", "train", 30)
        self.assertGreater(max(i["compute_ns"] for i in self.iterations(lines)), 200_000_000)


if __name__ == "__main__":
    unittest.main()
