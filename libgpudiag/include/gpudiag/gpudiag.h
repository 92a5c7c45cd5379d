/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API of libgpudiag: start a session, mark iterations and ranges, read the ledger.
 *
 * A program that is run under `gpudiag run` or with libgpudiag_inject.so preloaded needs none of
 * this. Link it to mark iterations and to name what the host does:
 *
 *     gpudiag_start(NULL);                    // options from GPUDIAG_* and defaults
 *     for (;;) {
 *       gpudiag_range_push("next batch", GPUDIAG_CAUSE_DATA_LOADING);
 *       load_batch();
 *       gpudiag_range_pop();
 *       train();
 *       gpudiag_step();                       // an iteration ends here and the next begins
 *     }
 *     gpudiag_stop();                         // optional: exit does it too
 *
 * There is one session in a process. Where several copies of the library are in it (injected,
 * linked, imported by Python) the first that starts owns the session and the others forward to it.
 *
 * Every function may be called from any thread, before a session starts and after it has stopped
 * (then it costs a few nanoseconds and does nothing), and in a forked child (likewise). None throws,
 * aborts, prints to stdout or changes the exit status. None needs a GPU, a driver or CUDA headers.
 * All times are nanoseconds.
 */
#ifndef GPUDIAG_GPUDIAG_H
#define GPUDIAG_GPUDIAG_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GPUDIAG_API __attribute__((visibility("default")))
#else
#define GPUDIAG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the interface described here; see gpudiag_version(). */
#define GPUDIAG_API_VERSION 1

/** What gpudiag_start() says. Everything from 0 up means that the other calls take effect. */
typedef enum gpudiag_status {
  GPUDIAG_OK = 0,         /**< this call started the session */
  GPUDIAG_RUNNING = 1,    /**< a session was there already (injected, say); its options stand */
  GPUDIAG_OFF = -1,       /**< switched off by GPUDIAG_ENABLED=off or by the options */
  GPUDIAG_FAILED = -2,    /**< a line on stderr says why; the program runs on without a ledger */
  GPUDIAG_FORKED = -3     /**< this process was forked from one with a session */
} gpudiag_status;

/** Causes of idle time, for ranges whose meaning the caller knows. docs/output.md explains each. */
typedef enum gpudiag_cause {
  GPUDIAG_CAUSE_NONE = 0, /**< not said: the table of range names decides (GPUDIAG_RANGES) */
  GPUDIAG_CAUSE_DATA_LOADING = 1,
  GPUDIAG_CAUSE_COMMUNICATION_WAIT = 2,
  GPUDIAG_CAUSE_LAUNCH_OVERHEAD = 3,
  GPUDIAG_CAUSE_SYNC = 4,
  GPUDIAG_CAUSE_ALLOCATION = 5,
  GPUDIAG_CAUSE_CHECKPOINT = 6,
  GPUDIAG_CAUSE_HOST = 7,
  GPUDIAG_CAUSE_DEPENDENCY = 8,
  GPUDIAG_CAUSE_UNKNOWN = 9
} gpudiag_cause;

/** Number of causes; gpudiag_iteration::idle_by_cause_ns is indexed by `cause - 1`. */
#define GPUDIAG_CAUSE_COUNT 9

/** Options of a session. Each is named like its environment variable GPUDIAG_<NAME>, which it
 *  overrides; text that is NULL and numbers that are negative leave the variable, then the default,
 *  in force. docs/configuration.md lists meanings, allowed values and defaults. A wrong value is
 *  one line on stderr and the default. Fill it with gpudiag_options_init(). */
typedef struct gpudiag_options {
  size_t size;             /**< sizeof(gpudiag_options) of the caller */
  const char* enabled;     /**< "on", "off" */
  const char* log;         /**< "on", "every", "off" or a file */
  const char* dir;         /**< folder for gpudiag.iteration/1 files and recordings */
  const char* record;      /**< "on", "off": write a gpudiag.records/1 recording into `dir` */
  const char* callbacks;   /**< "auto", "on", "off" */
  const char* nvtx;        /**< "on", "off" */
  const char* ranges;      /**< rules `regex=cause`, separated by ';' */
  const char* iteration;   /**< regex: ranges so named are iterations */
  const char* cupti;       /**< path of libcupti */
  double budget;           /**< percent of host time that gpudiag may take */
  int32_t rank;            /**< rank of this process in the job */
  const char* watch;       /**< "on", "off": look at the job's threads while gaps are long */
} gpudiag_options;

/** Sets every field to "not said". `size` is sizeof(gpudiag_options). */
GPUDIAG_API void gpudiag_options_init(gpudiag_options* options, size_t size);

/** Starts the session of this process, or joins the one that is there. `options` may be NULL.
 *  Safe at any time, before CUDA is used as well as after; kernels launched before are not seen. */
GPUDIAG_API gpudiag_status gpudiag_start(const gpudiag_options* options);

/** Ends the session that gpudiag_start() began and writes what has been recorded; waits at most two
 *  seconds for records that are still with the driver. A session may be started again. One that was
 *  there already (GPUDIAG_RUNNING) is not the program's to end: it runs on until exit. */
GPUDIAG_API void gpudiag_stop(void);

/** 1 while a session records in this process, else 0. */
GPUDIAG_API int gpudiag_active(void);

/** GPUDIAG_API_VERSION of the library at run time. */
GPUDIAG_API int gpudiag_version(void);

/** An iteration of the training loop ends here and the next begins. Iterations are numbered from 0.
 *  Call it at one place of one thread. [hot: no lock, no allocation, no system call] */
GPUDIAG_API void gpudiag_step(void);

/** The same with the job's own number for the iteration that ends. [hot] */
GPUDIAG_API void gpudiag_step_number(uint64_t number);

/** What ends an iteration. Each kind is a loop of its own: a device follows the most trusted one, so
 *  a framework's hook may mark optimizer steps in a job that also calls gpudiag_step(). */
typedef enum gpudiag_mark_kind {
  GPUDIAG_MARK_STEP = 0,      /**< the program says so: gpudiag_step() */
  GPUDIAG_MARK_OPTIMIZER = 3  /**< an optimizer has stepped; `opened_by` is `optimizer` */
} gpudiag_mark_kind;

/** What an iteration was for. Only training counts for findings. */
typedef enum gpudiag_phase {
  GPUDIAG_PHASE_TRAIN = 0,
  GPUDIAG_PHASE_EVALUATION = 1
} gpudiag_phase;

/** `number` of gpudiag_mark() where the job has none of its own. */
#define GPUDIAG_NO_NUMBER UINT64_MAX

/** An iteration ends here, as with gpudiag_step_number(), and it was one of `phase`. An iteration of
 *  evaluation takes no number of the count: it bears that of the training iteration that follows.
 *  A kind or phase that is none does nothing. [hot] */
GPUDIAG_API void gpudiag_mark(gpudiag_mark_kind kind, gpudiag_phase phase, uint64_t number);

/** The calling thread enters a range; ranges of a thread nest. The name is copied, its first 200
 *  bytes count; NULL is "". With a cause, idle time behind the range is charged to that cause.
 *  [hot] */
GPUDIAG_API void gpudiag_range_push(const char* name, gpudiag_cause cause);

/** Leaves the innermost range that this thread entered; nothing where there is none. [hot] */
GPUDIAG_API void gpudiag_range_pop(void);

/** Reports, after the fact, that the calling thread was inside `name` in [start_ns, end_ns) of
 *  gpudiag_now_ns(). [hot] */
GPUDIAG_API void gpudiag_annotate(const char* name, gpudiag_cause cause, int64_t start_ns,
                                  int64_t end_ns);

/** Another profiler is about to use CUPTI, which has one user at a time: until gpudiag_resume() the
 *  session records no GPU activity, and the iterations of that time are invalid: `stood_aside`. What
 *  was ours has been taken and CUPTI is as if gpudiag had not been there when this returns, which may
 *  take 0.3 s while the GPU works, and two seconds at the most. `who` is for the note that says for
 *  how long; NULL is "another profiler". Calls are counted and may nest; they hold for sessions that
 *  start later too, and do nothing where there is no GPU. Hold no lock over it that a callback of
 *  gpudiag_on_iteration() takes. From within such a callback it only asks, and returns at once. */
GPUDIAG_API void gpudiag_stand_aside(const char* who);

/** The other profiler has ended: takes back one gpudiag_stand_aside(), and with the last of them CUPTI;
 *  launches that follow are recorded when this returns. Without a gpudiag_stand_aside() before it: the
 *  profiler that took CUPTI unasked, as the line on stderr said, is known to have ended. */
GPUDIAG_API void gpudiag_resume(void);

/** Where a range comes from; what the host did in a long silence is told by it. */
typedef enum gpudiag_range_source {
  GPUDIAG_RANGE_USER = 0,       /**< the program's own */
  GPUDIAG_RANGE_ANNOTATION = 2, /**< a framework's record_function and the like */
  GPUDIAG_RANGE_OPERATOR = 3,   /**< an operator of a framework: aten::mm */
  GPUDIAG_RANGE_PYTHON = 4      /**< a Python frame */
} gpudiag_range_source;

/** gpudiag_annotate() for what a framework says of itself. A source that is none does nothing. [hot] */
GPUDIAG_API void gpudiag_annotate_from(gpudiag_range_source source, const char* name, int64_t start_ns,
                                       int64_t end_ns);

/** The session's clock: CLOCK_MONOTONIC. [hot] */
GPUDIAG_API int64_t gpudiag_now_ns(void);

/** The ledger of one iteration on one device. Exactly:
 *    wall = compute + communication + copy + idle,   idle = sum of idle_by_cause. */
typedef struct gpudiag_iteration {
  size_t size;          /**< bytes of this struct that are filled */
  uint64_t index;
  int32_t rank;
  uint32_t device;
  int32_t valid;        /**< 0: some of its records are defective; it is in no sum */
  int32_t partial;      /**< 1: first or last, may be cut */
  int64_t wall_ns;
  int64_t compute_ns;
  int64_t communication_ns;
  int64_t copy_ns;
  int64_t idle_ns;
  int64_t idle_by_cause_ns[GPUDIAG_CAUSE_COUNT];
  int64_t own_ns;       /**< time spent in gpudiag on the loop's threads */
  int32_t opened_by;    /**< a gpudiag_mark_kind, or another number for what else ended it (docs/output.md) */
  int32_t phase;        /**< a gpudiag_phase, or another number: 3 is a window of a job without marks */
} gpudiag_iteration;

/** Copies the latest iteration that was closed. `iteration->size` must hold the size of the
 *  caller's struct. Returns 1, or 0 where none has been closed yet. */
GPUDIAG_API int gpudiag_last(gpudiag_iteration* iteration);

/** Called for every iteration that closes, on gpudiag's own thread, up to two seconds after it
 *  ended. It must not call CUDA, and must return: one that ends its thread, or lets a C++ exception
 *  out, ends the job (on_iteration() of gpudiag.hpp catches them). gpudiag_start() and
 *  gpudiag_stop() do nothing on this thread. */
typedef void (*gpudiag_iteration_callback)(const gpudiag_iteration* iteration, void* user);

/** Sets the callback, NULL for none. It may still be running once for another iteration when this
 *  returns. */
GPUDIAG_API void gpudiag_on_iteration(gpudiag_iteration_callback callback, void* user);

/** The same by asking, for programs that must not be called from a thread that is not theirs. The
 *  first call, with `capacity` 0, begins: from then on iterations that close are kept. Takes up to
 *  `capacity` of them, oldest first, and where there is none waits up to `timeout_ms` for one.
 *  `iterations[0].size` must hold the size of the caller's struct, which is the distance between
 *  elements too. Returns how many were taken. Of those that nobody takes the newest 4,096 are kept.
 *  There is one queue in a process; `capacity` 0 with a negative `timeout_ms` ends it, and wakes
 *  whoever waits. */
GPUDIAG_API size_t gpudiag_take_iterations(gpudiag_iteration* iterations, size_t capacity,
                                           int timeout_ms);

/** The report of this process so far, `gpudiag.report/1` as JSON with a final 0, over the newest
 *  iterations (some 4,000) of the session, or of the last one where none runs. Writes nothing where
 *  `capacity` is too small. Returns the bytes it takes, 0 where there is nothing to report; it may
 *  have grown at the next call. Takes milliseconds. */
GPUDIAG_API size_t gpudiag_report(char* text, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
