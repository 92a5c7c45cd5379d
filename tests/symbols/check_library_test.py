# SPDX-License-Identifier: Apache-2.0
"""Builds libraries that each break one rule, and sees that check_library.py names the breach.

Usage: check_library_test.py C_COMPILER
"""
import os
import subprocess
import sys
import tempfile
import unittest

import check_library

# A library that has each name it must have, and no other.
ENTRIES = check_library.RULES["gpudiag_inject"].must_export
GOOD = '#define VISIBLE __attribute__((visibility("default")))\n' + "".join(
    f"VISIBLE int {name}(void *table) {{ return table != 0; }}\n" for name in ENTRIES)
COMPILER = "cc"


class CheckLibrary(unittest.TestCase):
    def breaches(self, source, *options):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "library.so")
            subprocess.run(
                [COMPILER, "-shared", "-fPIC", "-fvisibility=hidden", "-x", "c", "-", "-o", library,
                 *options],
                input=source, text=True, check=True)
            return check_library.check("gpudiag_inject", library)

    def test_accepts_a_library_of_libc_alone(self):
        self.assertEqual(self.breaches(GOOD), [])

    def test_names_a_dependency(self):
        found = self.breaches(GOOD, "-Wl,--no-as-needed", "-lm")
        self.assertEqual(found, ["depends on libm.so.6"])

    def test_names_an_export(self):
        self.assertEqual(self.breaches(GOOD + "VISIBLE int helper;"), ["exports helper"])

    def test_names_a_missing_entry_point(self):
        for name in ENTRIES:
            source = GOOD.replace(f"VISIBLE int {name}(", f"int {name}(")
            self.assertEqual(self.breaches(source), [f"lacks {name}"])

    def test_names_a_symbol_of_a_newer_libc(self):
        # The linker notes the version of the machine's libc; getrandom came with 2.25.
        source = GOOD + ("#include <sys/random.h>\n"
                         "long use(void *p) { return getrandom(p, 1, 0); }\n"
                         "long (*volatile keep)(void *) = use;")
        found = self.breaches(source)
        self.assertEqual(len(found), 1)
        self.assertIn("asks for getrandom of GLIBC_2.25", found[0])

    def test_names_thread_local_storage(self):
        source = GOOD + "__thread int counter; int *address(void) { return &counter; }"
        found = self.breaches(source)
        self.assertIn("keeps 4 bytes thread-local, over 0", found)


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main()
