// SPDX-License-Identifier: Apache-2.0
// One of many libraries that take static thread-local storage before anybody else is loaded.
static __thread char storage[64] __attribute__((tls_model("initial-exec")));

__attribute__((visibility("default"))) char *tls_hungry(void);
char *tls_hungry(void) { return storage; }
