// SPDX-License-Identifier: Apache-2.0
// A program with device code in it that asks the loader for no CUDA runtime.
__attribute__((used, section(".nv_fatbin"))) static const char kDeviceCode[] = "code";

int main(void) { return 0; }
