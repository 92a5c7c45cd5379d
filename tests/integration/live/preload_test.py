# SPDX-License-Identifier: Apache-2.0
"""Beside other libraries that change how a process finds its functions."""
import pathlib
import tempfile
import unittest

from live_test import LiveTest
from support import INJECT, PROGRAMS

HOOK = PROGRAMS / "libdlsym_hook.so"


class Preload(LiveTest):
    def test_a_tool_that_replaces_dlsym_may_stand_before_and_after_us(self):
        for order in (f"{HOOK}:{INJECT}", f"{INJECT}:{HOOK}"):
            with self.subTest(order=order), tempfile.TemporaryDirectory() as folder:
                count = pathlib.Path(folder) / "count"
                with_us = self.untouched("train", 12, preload=False, LD_PRELOAD=order, DLSYM_HOOK_COUNT=count)
                self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)
                self.assertGreater(int(count.read_text()), 10)

    def test_thread_storage_that_others_have_used_up_does_not_keep_us_out(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "refused"
            with_us = self.untouched(
                "train",
                12,
                preload=False,
                LD_PRELOAD=f"{PROGRAMS / 'libtls_eater.so'}:{INJECT}",
                TLS_HUNGRY_FOLDER=PROGRAMS,
                TLS_HUNGRY_REPORT=report,
            )
            self.assertGreater(int(report.read_text()), 0)
        self.assertTrue(any(" iter " in line for line in with_us.ours), with_us.ours)


if __name__ == "__main__":
    unittest.main()
