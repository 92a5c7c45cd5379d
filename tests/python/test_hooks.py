# SPDX-License-Identifier: Apache-2.0
"""What the hooks find in real PyTorch on the simulated GPU, without a change to the script."""
import unittest

from support import program, shares


class Loaders(unittest.TestCase):
    """Each kind: its batches are what they are without us, an iteration ends at each optimizer step,
    and the wait for the next batch is data loading."""

    def check(self, kind, sub_cause, iterator, dataset="map"):
        run = program("loader", kind, dataset)
        bare = program("loader", kind, dataset, how="bare")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(run.found(), bare.found())
        self.assertEqual(len(run.files), 1, run.files)  # no worker wrote one
        steps = len(run.found()["sums"])
        self.assertEqual(run.numbers()[:steps], list(range(steps)))
        idle, evidence = shares(run.later())
        self.assertEqual(max(idle, key=idle.get), "data_loading", idle)
        self.assertIn(("data_loading", sub_cause), {key[:2] for key in evidence}, evidence)
        self.assertIn(iterator, " ".join(key[2] for key in evidence))
        return run, evidence

    def test_SingleProcessLoadsInline(self):
        self.check("single", "inline", "_SingleProcessDataLoaderIter.__next__")

    def test_WorkersAreWaitedForAndTheirStartIsSeen(self):
        _, evidence = self.check("workers", "", "_MultiProcessingDataLoaderIter.__next__")
        self.assertIn(("data_loading", "worker_start", "DataLoader.__iter__"), evidence)

    def test_PersistentWorkers(self):
        self.check("persistent", "", "_MultiProcessingDataLoaderIter.__next__")

    def test_PinnedMemory(self):
        self.check("pinned", "", "_MultiProcessingDataLoaderIter.__next__")

    def test_SpawnedWorkers(self):
        self.check("spawn", "worker_start", "DataLoader.__iter__")

    def test_ForkserverWorkers(self):
        self.check("forkserver", "worker_start", "DataLoader.__iter__")

    def test_IterableDataset(self):
        self.check("single", "inline", "_SingleProcessDataLoaderIter.__next__", "stream")

    def test_AWorkerThatDiesIsTheSameErrorAsWithoutUs(self):
        run = program("dying_worker", TEST_DIE_AT=20)
        bare = program("dying_worker", how="bare", TEST_DIE_AT=20)
        self.assertEqual(run.status, bare.status)
        self.assertIn("Error", run.stderr)
        self.assertGreater(len(run.iterations), 0)


class Boundaries(unittest.TestCase):
    def marked_by_optimizer(self, name, *arguments):
        run = program(name, *arguments)
        self.assertEqual(run.status, 0, run.stderr)
        found = [one for one in run.of("train") if one["opened_by"] == "optimizer"]
        # What comes behind the last mark, if the GPU worked there, is cut and has a number of its own.
        return found[:-1] if found and found[-1]["partial"] and len(found) > 1 else found

    def check(self, name, count):
        found = self.marked_by_optimizer(name)
        self.assertEqual([one["index"] for one in found], list(range(count)))
        return found

    def test_EachOptimizerStepEndsAnIteration(self):
        self.check("steps", 12)

    def test_AccumulatedGradientsAreOneIteration(self):
        self.assertGreater(self.check("accumulation", 12)[5]["launches"], 3 * 12)

    def test_OfTwoOptimizersTheFirstCounts(self):
        self.check("two_optimizers", 12)

    def test_AnotherOptimizerLeadsWhenTheFirstIsGone(self):
        self.check("leader_leaves", 3 + 12)

    def test_AStepThatTheGradScalerSkipsEndsAnIteration(self):
        self.check("scaler", 12)

    def test_TheReplayOfAGraphWithAnOptimizerStepEndsAnIteration(self):
        self.check("graphs", 3 + 12)

    def test_StepBeatsTheOptimizerAndKeepsTheJobsNumbers(self):
        run = program("explicit", how="import")
        self.assertEqual(run.status, 0, run.stderr)
        marked = [one for one in run.of("train") if one["opened_by"] == "step"]
        self.assertEqual([one["index"] for one in marked][:12], list(range(100, 112)))
        self.assertNotIn("optimizer", {one["opened_by"] for one in run.iterations})


class Evaluation(unittest.TestCase):
    def test_BatchesWithoutGradientsAreIterationsOfEvaluation(self):
        self.check("no_grad")

    def test_SoAreBatchesOfAModelInEval(self):
        self.check("eval")

    def check(self, style):
        run = program("evaluation", style)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(len(run.of("evaluation")), 2 * 3)
        # Numbers count training: 4 steps, evaluation before the fifth, 4 steps, evaluation.
        self.assertEqual([one["index"] for one in run.of("evaluation")], [4] * 3 + [8] * 3)
        self.assertEqual(run.numbers()[:8], list(range(8)))
        self.assertTrue(any("evaluation before iter" in line for line in run.ours), run.ours)

    def test_AFrozenPartIsNoEvaluation(self):
        run = program("evaluation", "frozen")
        self.assertEqual(run.status, 0, run.stderr)
        self.assertEqual(len(run.of("evaluation")), 0)


class Causes(unittest.TestCase):
    def leading(self, name):
        run = program(name)
        self.assertEqual(run.status, 0, run.stderr)
        idle, evidence = shares(run.later())
        return max(idle, key=idle.get), evidence

    def test_TorchSaveIsCheckpoint(self):
        cause, evidence = self.leading("checkpoints")
        self.assertEqual(cause, "checkpoint", evidence)

    def test_GarbageCollectionIsSeen(self):
        cause, evidence = self.leading("garbage")
        self.assertEqual(cause, "host", evidence)
        self.assertIn(("host", "garbage_collection"), {key[:2] for key in evidence}, evidence)

    def test_EmptyCacheIsAllocation(self):
        _, evidence = self.leading("empty_cache")
        self.assertIn("allocation", {key[0] for key in evidence}, evidence)


class Operators(unittest.TestCase):
    def test_ScopesAndSampledOperatorsNameTheHostsTime(self):
        run = program("operators", GPUDIAG_OPS="on")
        self.assertEqual(run.status, 0, run.stderr)
        _, evidence = shares(run.later())
        names = {key[2] for key in evidence}
        self.assertIn("a scope of the script's", names)
        self.assertIn("aten::item", names)

    def test_WithoutBeingAskedThereAreNoOperators(self):
        run = program("operators")
        self.assertEqual(run.status, 0, run.stderr)
        names = {key[2] for key in shares(run.later())[1]}
        self.assertIn("a scope of the script's", names)
        self.assertNotIn("aten::item", names)


if __name__ == "__main__":
    unittest.main()
