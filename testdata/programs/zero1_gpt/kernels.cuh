// The kernels. Each is written once, as what thread i does: NAME_at for host and device. NAME_kernel calls it on the
// device. The twin of a kernel runs all its threads on the host, one after the other; tests/fakes/cuda finds it by
// the kernel's name.
#pragma once

#include <math.h>

#include <cstddef>
#include <utility>

#include "number.cuh"

#define ZERO1_LIST(...) __VA_ARGS__
#define ZERO1_KERNEL(name, parameters, arguments)                                                  \
    template <class T>                                                                             \
    __host__ __device__ inline void name##_at(int i, ZERO1_LIST parameters);                       \
    template <class T>                                                                             \
    __global__ void name##_kernel(ZERO1_LIST parameters) {                                         \
        name##_at<T>(static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), ZERO1_LIST arguments); \
    }                                                                                              \
    template <class T>                                                                             \
    __host__ __device__ inline void name##_at(int i, ZERO1_LIST parameters)

using zero1::narrow;
using zero1::widen;

ZERO1_KERNEL(embed, (T* out, const int* tokens, const T* wte, const T* wpe, int rows, int context, int channels),
             (out, tokens, wte, wpe, rows, context, channels)) {
    if (i >= rows * channels) return;
    const int row = i / channels, c = i % channels;
    out[i] = narrow<T>(widen(wte[tokens[row] * channels + c]) + widen(wpe[row % context * channels + c]));
}

// Every token's gradient goes to one row of the table; a thread adds up one element of it, in the order of the rows.
ZERO1_KERNEL(embed_backward,
             (T * dwte, T* dwpe, const int* tokens, const T* dout, int rows, int context, int vocabulary, int channels),
             (dwte, dwpe, tokens, dout, rows, context, vocabulary, channels)) {
    if (i >= (vocabulary + context) * channels) return;
    const int entry = i / channels, c = i % channels;
    const bool position = entry >= vocabulary;
    float sum = 0;
    for (int row = 0; row < rows; ++row)
        if (position ? row % context == entry - vocabulary : tokens[row] == entry) sum += widen(dout[row * channels + c]);
    T& into = position ? dwpe[i - vocabulary * channels] : dwte[i];
    into = narrow<T>(widen(into) + sum);
}

ZERO1_KERNEL(norm, (T* out, float* mean, float* rstd, const T* x, const T* weight, const T* bias, int rows, int channels),
             (out, mean, rstd, x, weight, bias, rows, channels)) {
    if (i >= rows) return;
    x += i * channels;
    out += i * channels;
    float sum = 0, squares = 0;
    for (int c = 0; c < channels; ++c) sum += widen(x[c]);
    const float m = sum / channels;
    for (int c = 0; c < channels; ++c) squares += (widen(x[c]) - m) * (widen(x[c]) - m);
    const float r = 1.0f / sqrtf(squares / channels + 1e-5f);
    for (int c = 0; c < channels; ++c)
        out[c] = narrow<T>((widen(x[c]) - m) * r * widen(weight[c]) + widen(bias[c]));
    mean[i] = m;
    rstd[i] = r;
}

// Adds to dx, which has the gradient of the residual stream.
ZERO1_KERNEL(norm_backward,
             (T * dx, const T* dy, const T* x, const T* weight, const float* mean, const float* rstd, int rows, int channels),
             (dx, dy, x, weight, mean, rstd, rows, channels)) {
    if (i >= rows) return;
    x += i * channels;
    dx += i * channels;
    dy += i * channels;
    float sum = 0, product = 0;
    for (int c = 0; c < channels; ++c) {
        const float d = widen(dy[c]) * widen(weight[c]);
        sum += d;
        product += d * (widen(x[c]) - mean[i]) * rstd[i];
    }
    for (int c = 0; c < channels; ++c) {
        const float normed = (widen(x[c]) - mean[i]) * rstd[i];
        const float d = widen(dy[c]) * widen(weight[c]) - sum / channels - normed * product / channels;
        dx[c] = narrow<T>(widen(dx[c]) + d * rstd[i]);
    }
}

ZERO1_KERNEL(norm_weight_backward,
             (T * dweight, T* dbias, const T* dy, const T* x, const float* mean, const float* rstd, int rows, int channels),
             (dweight, dbias, dy, x, mean, rstd, rows, channels)) {
    if (i >= channels) return;
    float of_weight = 0, of_bias = 0;
    for (int row = 0; row < rows; ++row) {
        const float d = widen(dy[row * channels + i]);
        of_bias += d;
        of_weight += d * (widen(x[row * channels + i]) - mean[row]) * rstd[row];
    }
    dweight[i] = narrow<T>(widen(dweight[i]) + of_weight);
    dbias[i] = narrow<T>(widen(dbias[i]) + of_bias);
}

ZERO1_KERNEL(bias_backward, (T * dbias, const T* dy, int rows, int channels), (dbias, dy, rows, channels)) {
    if (i >= channels) return;
    float sum = 0;
    for (int row = 0; row < rows; ++row) sum += widen(dy[row * channels + i]);
    dbias[i] = narrow<T>(widen(dbias[i]) + sum);
}

// The defect of --half-accumulator: the running sum is rounded to T after each addition.
ZERO1_KERNEL(bias_backward_narrow, (T * dbias, const T* dy, int rows, int channels), (dbias, dy, rows, channels)) {
    if (i >= channels) return;
    T sum = narrow<T>(0);
    for (int row = 0; row < rows; ++row) sum = narrow<T>(widen(sum) + widen(dy[row * channels + i]));
    dbias[i] = narrow<T>(widen(dbias[i]) + widen(sum));
}

// A thread has one row of scores: (sequence, head, time). qkv is (sequence, time, 3, head, size).
ZERO1_KERNEL(attention, (T* out, T* weights, const T* qkv, int rows, int context, int heads, int size),
             (out, weights, qkv, rows, context, heads, size)) {
    if (i >= rows * heads) return;
    const int time = i % context, head = i / context % heads, first = i / (context * heads) * context;
    const int channels = heads * size;
    const T* const query = qkv + (first + time) * 3 * channels + head * size;
    T* const own = weights + i * context;
    float largest = -3e38f, sum = 0;
    for (int s = 0; s <= time; ++s) {
        const T* const key = qkv + (first + s) * 3 * channels + channels + head * size;
        float score = 0;
        for (int d = 0; d < size; ++d) score += widen(query[d]) * widen(key[d]);
        score /= sqrtf(static_cast<float>(size));
        own[s] = narrow<T>(score);
        largest = fmaxf(largest, score);
    }
    for (int s = 0; s <= time; ++s) sum += expf(widen(own[s]) - largest);
    for (int s = 0; s < context; ++s) own[s] = narrow<T>(s <= time ? expf(widen(own[s]) - largest) / sum : 0.0f);
    for (int d = 0; d < size; ++d) {
        float value = 0;
        for (int s = 0; s <= time; ++s)
            value += widen(own[s]) * widen(qkv[(first + s) * 3 * channels + 2 * channels + head * size + d]);
        out[(first + time) * channels + head * size + d] = narrow<T>(value);
    }
}

ZERO1_KERNEL(attention_scores_backward,
             (T * dscores, const T* dout, const T* weights, const T* qkv, int rows, int context, int heads, int size),
             (dscores, dout, weights, qkv, rows, context, heads, size)) {
    if (i >= rows * heads) return;
    const int time = i % context, head = i / context % heads, first = i / (context * heads) * context;
    const int channels = heads * size;
    const T* const own = weights + i * context;
    const T* const d = dout + (first + time) * channels + head * size;
    float dot = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (int s = 0; s <= time; ++s) {
            const T* const value = qkv + (first + s) * 3 * channels + 2 * channels + head * size;
            float dweight = 0;
            for (int k = 0; k < size; ++k) dweight += widen(d[k]) * widen(value[k]);
            if (pass == 0) dot += dweight * widen(own[s]);
            else dscores[i * context + s] = narrow<T>((dweight - dot) * widen(own[s]));
        }
}

ZERO1_KERNEL(attention_backward,
             (T * dqkv, const T* dscores, const T* dout, const T* weights, const T* qkv, int rows, int context, int heads,
              int size),
             (dqkv, dscores, dout, weights, qkv, rows, context, heads, size)) {
    if (i >= rows * heads) return;
    const int time = i % context, head = i / context % heads, first = i / (context * heads) * context;
    const int channels = heads * size, pitch = 3 * channels;
    const T* const of_head = qkv + first * pitch + head * size;
    const float factor = 1.0f / sqrtf(static_cast<float>(size));
    const int square = i - time;  // first row of this head's scores
    T* const into = dqkv + (first + time) * pitch + head * size;
    for (int d = 0; d < size; ++d) {
        float query = 0, key = 0, value = 0;
        for (int s = 0; s <= time; ++s) query += widen(dscores[i * context + s]) * widen(of_head[s * pitch + channels + d]);
        for (int u = time; u < context; ++u) {
            key += widen(dscores[(square + u) * context + time]) * widen(of_head[u * pitch + d]);
            value += widen(weights[(square + u) * context + time]) *
                     widen(dout[(first + u) * channels + head * size + d]);
        }
        into[d] = narrow<T>(query * factor);
        into[channels + d] = narrow<T>(key * factor);
        into[2 * channels + d] = narrow<T>(value);
    }
}

ZERO1_KERNEL(add, (T* out, const T* a, const T* b, int n), (out, a, b, n)) {
    if (i < n) out[i] = narrow<T>(widen(a[i]) + widen(b[i]));
}

ZERO1_KERNEL(gelu, (T* out, const T* x, int n), (out, x, n)) {
    if (i >= n) return;
    const float v = widen(x[i]);
    out[i] = narrow<T>(0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v))));
}

ZERO1_KERNEL(gelu_backward, (T * dx, const T* x, const T* dy, int n), (dx, x, dy, n)) {
    if (i >= n) return;
    const float v = widen(x[i]), t = tanhf(0.79788456f * (v + 0.044715f * v * v * v));
    const float slope = 0.79788456f * (1.0f + 3 * 0.044715f * v * v);
    dx[i] = narrow<T>(widen(dy[i]) * (0.5f * (1.0f + t) + 0.5f * v * (1.0f - t * t) * slope));
}

// Replaces the logits by their gradients, times the loss scale.
ZERO1_KERNEL(cross_entropy, (float* losses, T* logits, const int* targets, const float* scale, int rows, int vocabulary),
             (losses, logits, targets, scale, rows, vocabulary)) {
    if (i >= rows) return;
    logits += i * vocabulary;
    float largest = -3e38f, sum = 0;
    for (int v = 0; v < vocabulary; ++v) largest = fmaxf(largest, widen(logits[v]));
    for (int v = 0; v < vocabulary; ++v) sum += expf(widen(logits[v]) - largest);
    losses[i] = logf(sum) + largest - widen(logits[targets[i]]);
    for (int v = 0; v < vocabulary; ++v) {
        const float p = expf(widen(logits[v]) - largest) / sum;
        logits[v] = narrow<T>((p - (v == targets[i] ? 1.0f : 0.0f)) * *scale / rows);
    }
}

ZERO1_KERNEL(mean, (float* out, const T* x, int n), (out, x, n)) {
    if (i != 0) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += widen(x[k]);
    *out = sum / n;
}

ZERO1_KERNEL(find_nonfinite, (float* found, const T* x, int n), (found, x, n)) {
    if (i < n && !isfinite(widen(x[i]))) *found = 1;
}

// The defect of --overflow-at: large, but finite.
ZERO1_KERNEL(amplify, (T * x, float factor, int n), (x, factor, n)) {
    if (i < n) x[i] = narrow<T>(widen(x[i]) * factor);
}

struct AdamW {
    float rate, factor, correction1, correction2, decay;  // factor: of the gradient
};

__host__ __device__ inline float stepped(float weight, float gradient, float& m, float& v, const AdamW& step) {
    m = 0.9f * m + 0.1f * gradient;
    v = 0.95f * v + 0.05f * gradient * gradient;
    const float update = (m / step.correction1) / (sqrtf(v / step.correction2) + 1e-8f);
    return weight - step.rate * (update + step.decay * weight);
}

ZERO1_KERNEL(adamw, (T * weight, float* master, float* m, float* v, const T* gradient, AdamW step, int n),
             (weight, master, m, v, gradient, step, n)) {
    if (i >= n) return;
    master[i] = stepped(master[i], widen(gradient[i]) * step.factor, m[i], v[i], step);
    weight[i] = narrow<T>(master[i]);
}

// The defect of --no-master: an update below half an ULP of a 16-bit weight is lost.
ZERO1_KERNEL(adamw_without_master, (T * weight, float* m, float* v, const T* gradient, AdamW step, int n),
             (weight, m, v, gradient, step, n)) {
    if (i < n) weight[i] = narrow<T>(stepped(widen(weight[i]), widen(gradient[i]) * step.factor, m[i], v[i], step));
}

namespace zero1 {

template <class... P, std::size_t... K>
void run_on_host(void (*at)(int, P...), int threads, void** arguments, std::index_sequence<K...>) {
    for (int i = 0; i < threads; ++i) at(i, *static_cast<P*>(arguments[K])...);
}
template <class... P>
void run_on_host(void (*at)(int, P...), int threads, void** arguments) {
    run_on_host(at, threads, arguments, std::index_sequence_for<P...>());
}
template <class... P>
const unsigned* sizes_of(void (*)(int, P...)) {
    static const unsigned sizes[] = {sizeof(P)..., 0};
    return sizes;
}

}  // namespace zero1

// The twin of NAME_kernel<T>: threads, and the arguments as cudaLaunchKernel gets them. And their sizes, up to a 0.
#define ZERO1_TWIN(name, T)                                                      \
    extern "C" void host_##name##_kernel_##T##_(int threads, void** arguments) { \
        zero1::run_on_host(name##_at<T>, threads, arguments);                    \
    }                                                                            \
    extern "C" const unsigned* host_##name##_kernel_##T##__sizes() { return zero1::sizes_of(name##_at<T>); }
#define ZERO1_TWINS(name)           \
    ZERO1_TWIN(name, float)         \
    ZERO1_TWIN(name, __nv_bfloat16) \
    ZERO1_TWIN(name, __half)

ZERO1_TWINS(embed)
ZERO1_TWINS(embed_backward)
ZERO1_TWINS(norm)
ZERO1_TWINS(norm_backward)
ZERO1_TWINS(norm_weight_backward)
ZERO1_TWINS(bias_backward)
ZERO1_TWINS(bias_backward_narrow)
ZERO1_TWINS(attention)
ZERO1_TWINS(attention_scores_backward)
ZERO1_TWINS(attention_backward)
ZERO1_TWINS(add)
ZERO1_TWINS(gelu)
ZERO1_TWINS(gelu_backward)
ZERO1_TWINS(cross_entropy)
ZERO1_TWINS(mean)
ZERO1_TWINS(find_nonfinite)
ZERO1_TWINS(amplify)
ZERO1_TWINS(adamw)
ZERO1_TWINS(adamw_without_master)
