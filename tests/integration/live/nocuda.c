/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API in a program without CUDA: every call in every order is harmless. */
#include <gpudiag/gpudiag.h>
#include <stdio.h>

int main(void) {
  gpudiag_options options;
  gpudiag_iteration iteration;
  gpudiag_range_pop();
  gpudiag_step();
  gpudiag_stop();
  gpudiag_options_init(&options, sizeof options);
  options.log = "off";
  printf("start %d\n", gpudiag_start(&options) >= 0);
  printf("again %d\n", gpudiag_start(NULL));
  printf("active %d\n", gpudiag_active());
  gpudiag_range_push("batch", GPUDIAG_CAUSE_DATA_LOADING);
  gpudiag_range_push(NULL, (gpudiag_cause)1234);
  gpudiag_range_pop();
  gpudiag_range_pop();
  gpudiag_annotate("past", GPUDIAG_CAUSE_HOST, 5, 1);
  gpudiag_step_number(7);
  iteration.size = sizeof iteration;
  printf("last %d\n", gpudiag_last(&iteration));
  printf("last of nothing %d\n", gpudiag_last(NULL));
  gpudiag_on_iteration(NULL, NULL);
  gpudiag_stop();
  gpudiag_stop();
  printf("active %d\n", gpudiag_active());
  gpudiag_step();
  return 0;
}
