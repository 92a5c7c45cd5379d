/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the C trainer, behind functions that C can call. Each queues its work on `stream`
 * and returns; pointers are to device memory. */
#ifndef C_TRAINER_KERNELS_H
#define C_TRAINER_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* predictions[i] = bias + the sum of weights[j] · inputs[i][j]; the bias is weights[features]. */
cudaError_t queue_predict(const float* inputs, const float* weights, float* predictions, int samples,
                          int features, cudaStream_t stream);

/* gradients = those of the mean squared error by the weights and the bias; *loss = that error. */
cudaError_t queue_gradients(const float* inputs, const float* targets, const float* predictions,
                            float* gradients, float* loss, int samples, int features,
                            cudaStream_t stream);

/* weights -= rate · gradients. */
cudaError_t queue_update(float* weights, const float* gradients, int count, float rate,
                         cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
