# SPDX-License-Identifier: Apache-2.0
"""The parts of the judge of live runs, on literal truths whose answers can be worked out by hand. Times in µs."""
import unittest

from live_host import steps
from live_judge import Row, judge_finding
from live_recording import Recorded, match
from live_replay import CopyEngine, Replay, differences
from live_truth import Call, Operation, Range, Truth, Wait
from live_windows import covered, launched, union, windows

US = 1000
LATENCY = 2


def operation(id, queued, start, end, kind="kernel", copy="", behind=(), stream=7):
    return Operation(id, kind, 0, (0, 1, stream), id, 0, queued * US, (queued + LATENCY) * US, start * US, end * US,
                     "", copy, 4, list(behind))


def call(function, id, start, end, wait=None, operations=()):
    """`wait`: for which operation, from when, to when."""
    waits = [Wait("stream_synchronize", wait[0], wait[1] * US, wait[2] * US)] if wait else []
    return Call(function, id, 1, 0, start * US, end * US, waits, list(operations))


def truth(calls, ranges=()):
    """`ranges`: name, start, end, times blocked."""
    operations = {o.id: o for c in calls for o in c.operations}
    return Truth(calls, operations, [Range(1, name, a * US, b * US, blocked) for name, a, b, blocked in ranges])


def end_without(of, removed, operation):
    return Replay(of, steps(of), removed).end[operation] // US


# A kernel, a wait for it, 300 µs of host time, another kernel.
SYNC_AND_HOST = truth([
    call("cudaLaunchKernel", 1, 0, 5, operations=[operation(1, 3, 5, 105)]),
    call("cudaStreamSynchronize", 2, 10, 110, wait=(1, 11, 109)),
    call("cudaLaunchKernel", 3, 410, 415, operations=[operation(3, 413, 415, 515)]),
])
# A batch that takes until 5000 µs; its taker waits for it, or loses the processor.
LATE_BATCH = [
    call("cudaLaunchKernel", 1, 0, 5, operations=[operation(1, 3, 5, 1005)]),
    call("cudaStreamSynchronize", 2, 10, 1010, wait=(1, 11, 1005)),
    call("cudaLaunchKernel", 3, 5010, 5015, operations=[operation(3, 5013, 5015, 5115)]),
]


class Parts(unittest.TestCase):
    def test_with_nothing_removed_all_is_as_it_was(self):
        done = steps(SYNC_AND_HOST)
        self.assertEqual(differences(SYNC_AND_HOST, done, Replay(SYNC_AND_HOST, done)), (0, 0))

    def test_a_time_that_is_wrong_is_noticed(self):
        done = steps(SYNC_AND_HOST)
        again = Replay(SYNC_AND_HOST, done)
        again.start[3] += 7
        self.assertEqual(differences(SYNC_AND_HOST, done, again), (1, 7))

    def test_a_wait_that_is_removed_lets_the_host_go_on(self):
        # 100 µs of the call's own go too.
        self.assertEqual(end_without(SYNC_AND_HOST, ["sync"], 3), 515 - 100)

    def test_long_silence_is_host_time(self):
        self.assertEqual(end_without(SYNC_AND_HOST, ["host"], 3), 515 - 300)

    def test_without_both_the_second_kernel_follows_the_first(self):
        self.assertEqual(end_without(SYNC_AND_HOST, ["sync", "host"], 3), 205)

    def test_a_late_batch_comes_when_it_came_whatever_else_is_removed(self):
        of = truth(LATE_BATCH, [("wait_for_batch", 1010, 5000, 1)])
        self.assertEqual(end_without(of, ["sync"], 3), 5115)
        self.assertEqual(end_without(of, ["data_loading"], 3), 5115 - 3990)

    def test_a_batch_that_was_there_is_host_time_like_any_other(self):
        of = truth(LATE_BATCH, [("wait_for_batch", 1010, 5000, 0)])
        self.assertEqual(end_without(of, ["sync"], 3), 5115 - 1000)
        # But no record tells.
        self.assertEqual(Replay(of, steps(of, as_recorded=True), ["sync"]).end[3] // US, 5115)

    def test_what_an_operation_follows_may_hold_it_back_once_it_is_earlier(self):
        of = truth([
            call("cudaLaunchKernel", 1, 0, 5, operations=[operation(1, 3, 5, 105, stream=8)]),
            call("cudaStreamSynchronize", 2, 10, 110, wait=(1, 11, 109)),
            call("cudaStreamWaitEvent", 3, 111, 112, operations=[operation(3, 111, 113, 113, "event_wait", behind=[1])]),
            call("cudaLaunchKernel", 4, 113, 115, operations=[operation(4, 114, 116, 126)]),
        ])
        self.assertEqual(end_without(of, ["sync"], 4), 115)

    def test_a_checkpoint_owns_all_that_is_done_in_it(self):
        of = truth([
            call("cudaLaunchKernel", 1, 0, 5, operations=[operation(1, 3, 5, 105)]),
            call("cudaMemcpyAsync", 2, 10, 15, operations=[operation(2, 12, 105, 205, "memcpy", "device_to_host")]),
            call("cudaStreamSynchronize", 3, 20, 210, wait=(2, 21, 209)),
            call("cudaLaunchKernel", 4, 1010, 1015, operations=[operation(4, 1013, 1015, 1115)]),
        ], [("checkpoint", 6, 1006, 1)])
        self.assertEqual(end_without(of, ["sync"], 4), 1115)
        self.assertEqual(end_without(of, ["checkpoint"], 4), 205)

    def test_a_copy_fits_into_a_hole_of_its_engine(self):
        engine = CopyEngine()
        self.assertEqual([engine.book(0, 10), engine.book(50, 10), engine.book(5, 20), engine.book(5, 30)],
                         [0, 50, 10, 60])

    def test_covered_counts_overlap_once(self):
        self.assertEqual(covered(union([(0, 10), (5, 20), (30, 40), (40, 50)]), 8, 45), 27)

    def test_a_window_ends_with_what_was_launched_last(self):
        kernel, late = operation(1, 0, 10, 20), operation(2, 1, 15, 60, stream=8)
        copy = operation(3, 2, 18, 30, "memcpy", "host_to_device", stream=9)
        of = truth([call("cudaLaunchKernel", 2, 0, 1, operations=[late]),
                    call("cudaMemcpyAsync", 3, 2, 3, operations=[copy]),
                    call("cudaLaunchKernel", 1, 4, 5, operations=[kernel]),
                    call("cudaLaunchKernel", 4, 50, 51, operations=[operation(4, 50, 70, 80)])],
                   [("step", 0, 40, 0), ("step", 40, 90, 0)])
        by_iteration = launched(of, 0)
        start_of = {o.id: o.start for o in of.operations.values()}
        end_of = {o.id: o.end for o in of.operations.values()}
        found = [(w.start // US, w.end // US, w.compute // US, w.copy // US, w.idle // US)
                 for w in windows(by_iteration, start_of, end_of)]
        self.assertEqual(found, [(10, 10, 0, 0, 0), (10, 20, 10, 0, 0), (20, 80, 50, 0, 10)])

    def test_an_operation_that_was_not_recorded_is_an_error(self):
        recorded = [Recorded("kernel", 0, 1, 7, 1, 5, 105)]
        with self.assertRaisesRegex(ValueError, "1 launches have other operations"):
            match(SYNC_AND_HOST, recorded)

    def test_a_row_is_right_within_two_per_cent(self):
        self.assertTrue(Row(0, "sync", 0.10, 0.119, 0.15, 0.10, 0.14).right)
        self.assertFalse(Row(0, "sync", 0.10, 0.121, 0.12, 0.10, 0.14).right)
        self.assertFalse(Row(0, "sync", 0.10, 0.10, 0.161, 0.10, 0.14).right)

    def test_the_verdict_must_be_what_leads_by_far(self):
        costs = dict.fromkeys(("launch_overhead", "allocation", "checkpoint", "communication", "copy"), 0.0)

        def faults(verdict, **more):
            found = []
            judge_finding(verdict, {**costs, **more}, sum(more.values()), found)
            return len(found)

        self.assertEqual(faults("sync", sync=0.30, host=0.05, data_loading=0.0), 0)
        self.assertEqual(faults("host", sync=0.30, host=0.05, data_loading=0.0), 1)
        self.assertEqual(faults("host", sync=0.30, host=0.28, data_loading=0.0), 0)
        self.assertEqual(faults("host_together", sync=0.30, host=0.05, data_loading=0.0), 1)


if __name__ == "__main__":
    unittest.main()
