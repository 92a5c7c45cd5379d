/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses every function of the C ABI on a machine that may have no GPU. */
#include <gpudiag/gpudiag.h>
#include <stdio.h>

static void count_iteration(const gpudiag_iteration* iteration, void* user) {
  (void)iteration;
  ++*(int*)user;
}

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

int main(void) {
  int iterations = 0;
  gpudiag_iteration last;
  gpudiag_options options;
  gpudiag_status status;

  /* Before a session every call is allowed and does nothing. */
  gpudiag_step();
  gpudiag_range_pop();
  if (gpudiag_active()) return fail("active before it was started");
  if (gpudiag_version() != GPUDIAG_API_VERSION) return fail("the library is of another version");

  gpudiag_options_init(&options, sizeof options);
  if (options.size != sizeof options || options.log != NULL || options.rank >= 0) {
    return fail("gpudiag_options_init() leaves something said");
  }
  options.enabled = "off";
  status = gpudiag_start(&options);
  if (status != GPUDIAG_OFF) return fail("started although it is switched off");

  options.enabled = NULL;
  options.log = "off";
  status = gpudiag_start(&options);
  if (status == GPUDIAG_FORKED || status == GPUDIAG_OFF) return fail("wrong status of the start");
  gpudiag_on_iteration(count_iteration, &iterations);
  gpudiag_range_push("next batch", GPUDIAG_CAUSE_DATA_LOADING);
  gpudiag_range_push(NULL, GPUDIAG_CAUSE_NONE);
  gpudiag_range_pop();
  gpudiag_range_pop();
  gpudiag_annotate("decode", GPUDIAG_CAUSE_NONE, gpudiag_now_ns(), gpudiag_now_ns());
  gpudiag_step();
  gpudiag_step_number(7);
  last.size = sizeof last;
  if (gpudiag_last(&last) != 0) return fail("an iteration without a GPU");
  gpudiag_stop();
  gpudiag_stop();
  if (gpudiag_active()) return fail("active after it was stopped");
  return iterations == 0 ? 0 : fail("a callback without an iteration");
}
