#include <mptrace.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda.hpp"
#include "kernels.cuh"
#include "layout.hpp"
#include "matmul.hpp"
#include "options.hpp"
#include "ranks.hpp"

namespace zero1 {
namespace {

constexpr int kC = kChannels;

// SplitMix64: the same numbers on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    float uniform() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }  // in [-1, 1)

private:
    std::uint64_t state_;
};

template <class... P, class... A>
void launch(void (*kernel)(P...), int threads, cudaStream_t stream, A... arguments) {
    constexpr int kBlock = 64;
    kernel<<<(threads + kBlock - 1) / kBlock, kBlock, 0, stream>>>(arguments...);
    ZERO1_CHECK(cudaGetLastError());
}

// Device memory in one piece, handed out from the front.
class Arena {
public:
    explicit Arena(std::size_t bytes) {
        ZERO1_CHECK(cudaMalloc(reinterpret_cast<void**>(&at_), bytes));
        ZERO1_CHECK(cudaMemset(at_, 0, bytes));
        end_ = at_ + bytes;
        start_ = at_;
    }
    ~Arena() { cudaFree(start_); }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    template <class V>
    V* take(std::size_t elements) {
        char* const taken = at_;
        at_ += (elements * sizeof(V) + 255) / 256 * 256;
        if (at_ > end_) fail("Arena", "too small");
        return reinterpret_cast<V*>(taken);
    }

private:
    char *at_, *end_, *start_;
};

// What the forward pass keeps for the backward pass.
template <class T>
struct Kept {
    T *input, *normed1, *qkv, *weights, *mixed, *middle, *normed2, *up, *active;
    float *mean1, *rstd1, *mean2, *rstd2;
};

template <class T>
class Trainer {
public:
    explicit Trainer(const Options& o)
        : o_(o),
          rows_(kBatch / o.world * kContext),
          memory_(24u << 20),
          products_(Names<T>::kCublas, o.half_accumulator, o.split_k, o.tf32) {
        ZERO1_CHECK(cudaStreamCreate(&main_));
        ZERO1_CHECK(cudaStreamCreate(&side_));
        ZERO1_CHECK(cudaEventCreateWithFlags(&ready_, cudaEventDisableTiming));
        ZERO1_CHECK(cudaEventCreateWithFlags(&reduced_, cudaEventDisableTiming));
        ZERO1_CHECK(cublasCreate(&blas_));
        ZERO1_CHECK(cublasSetStream(blas_, main_));
        ZERO1_CHECK(cudaMallocHost(reinterpret_cast<void**>(&host_), sizeof(Host)));
        comm_ = meet(o);
        take_memory();
        first_values();
        tell_mptrace();
    }
    ~Trainer() {
        ncclCommDestroy(comm_);
        cublasDestroy(blas_);
        cudaFreeHost(host_);
        cudaFree(told_);
        cudaEventDestroy(ready_);
        cudaEventDestroy(reduced_);
        cudaStreamDestroy(side_);
        cudaStreamDestroy(main_);
    }

    void run() {
        float scale = Names<T>::kNccl == ncclHalf ? o_.loss_scale : 1.0f;
        int good = 0;
        using Clock = std::chrono::steady_clock;
        Clock::time_point began = Clock::now();
        const int warm = o_.steps / 4;
        for (int step = 0; step < o_.steps; ++step) {
            if (step == warm) began = Clock::now();  // a step ends with a wait for the device
            const Range range("Train step", step);
            step_ = step;
            next_batch();
            host_->scale = scale;
            ZERO1_CHECK(cudaMemcpyAsync(scale_, &host_->scale, sizeof(float), cudaMemcpyHostToDevice, main_));
            ZERO1_CHECK(cudaMemsetAsync(gradients_, 0, layout_.size * sizeof(T), main_));
            forward_or_graph();
            backward();
            const bool finite = read_back();
            const bool taken = finite || o_.no_guard;
            if (taken) update(scale);
            if (o_.rank == 0)
                std::printf("step %d loss %a (%.6f) scale %g%s\n", step, host_->loss, host_->loss, scale,
                            taken ? "" : " skipped");
            if (Names<T>::kNccl != ncclHalf) continue;
            good = finite ? good + 1 : 0;
            if (!finite) scale /= 2;
            if (good == 20) scale *= 2, good = 0;
        }
        if (o_.clock && o_.rank == 0)
            std::fprintf(stderr, "%.1f\n", std::chrono::duration<double, std::micro>(Clock::now() - began).count() /
                                               (o_.steps - warm));
        print_weights();
    }

private:
    struct Host {  // pinned
        float scale, loss, nonfinite;
        int tokens[kBatch * kContext], targets[kBatch * kContext];
    };

    bool overflows(int layer) const {
        return step_ == o_.overflow_step && layer == o_.overflow_layer && o_.rank == o_.overflow_rank;
    }
    const T* weight(const Tensor& t) const { return weights_ + t.at; }
    T* gradient(const Tensor& t) const { return gradients_ + t.at; }
    std::size_t shard(const Tensor& t) const { return t.size / o_.world; }

    void take_memory() {
        weights_ = memory_.take<T>(layout_.size);
        gradients_ = memory_.take<T>(layout_.size);
        master_ = memory_.take<float>(layout_.size);  // this rank's shards; as large as with one rank
        m_ = memory_.take<float>(layout_.size);
        v_ = memory_.take<float>(layout_.size);
        scale_ = memory_.take<float>(1);
        tokens_ = memory_.take<int>(rows_);
        targets_ = memory_.take<int>(rows_);
        losses_ = memory_.take<float>(rows_);
        // The loss, and whether a gradient is not finite. Memory of its own, of which --count-bytes reads too much.
        ZERO1_CHECK(cudaMalloc(reinterpret_cast<void**>(&told_), 2 * sizeof(float)));
        for (Kept<T>& k : kept_) {
            k.input = memory_.take<T>(rows_ * kC);
            k.normed1 = memory_.take<T>(rows_ * kC);
            k.qkv = memory_.take<T>(rows_ * 3 * kC);
            k.weights = memory_.take<T>(rows_ * kHeads * kContext);
            k.mixed = memory_.take<T>(rows_ * kC);
            k.middle = memory_.take<T>(rows_ * kC);
            k.normed2 = memory_.take<T>(rows_ * kC);
            k.up = memory_.take<T>(rows_ * 4 * kC);
            k.active = memory_.take<T>(rows_ * 4 * kC);
            for (float** f : {&k.mean1, &k.rstd1, &k.mean2, &k.rstd2}) *f = memory_.take<float>(rows_);
        }
        last_ = memory_.take<T>(rows_ * kC);
        normed_ = memory_.take<T>(rows_ * kC);
        mean_ = memory_.take<float>(rows_);
        rstd_ = memory_.take<float>(rows_);
        logits_ = memory_.take<T>(rows_ * kVocabulary);
        branch_ = memory_.take<T>(rows_ * kC);
        dx_ = memory_.take<T>(rows_ * kC);
        dnarrow_ = memory_.take<T>(rows_ * kC);
        dwide_ = memory_.take<T>(rows_ * 4 * kC);
        dwide2_ = memory_.take<T>(rows_ * 4 * kC);
        dscores_ = memory_.take<T>(rows_ * kHeads * kContext);
    }

    void first_values() {
        Random random(o_.seed);
        std::vector<float> wide(layout_.size), own(layout_.size);
        std::vector<T> narrowed(layout_.size);
        for (const Tensor* t : layout_.all())
            for (std::size_t i = 0; i < t->size; ++i) wide[t->at + i] = t->centre + t->spread * random.uniform();
        for (std::size_t i = 0; i < wide.size(); ++i) narrowed[i] = narrow<T>(wide[i]);
        for (const Tensor* t : layout_.all())
            for (std::size_t i = 0; i < shard(*t); ++i) own[t->at + i] = wide[t->at + o_.rank * shard(*t) + i];
        ZERO1_CHECK(cudaMemcpy(weights_, narrowed.data(), narrowed.size() * sizeof(T), cudaMemcpyHostToDevice));
        ZERO1_CHECK(cudaMemcpy(master_, own.data(), own.size() * sizeof(float), cudaMemcpyHostToDevice));
    }

    // What mp-trace compares before and after an update: the weights, or their masters where they have any.
    void tell_mptrace() {
        if (!mptrace_tensor) return;
        const int dtype = Names<T>::kNccl == ncclHalf ? MPTRACE_FP16
                          : Names<T>::kNccl == ncclFloat ? MPTRACE_FP32
                                                         : MPTRACE_BF16;
        for (const Tensor* t : layout_.all()) {
            const long long whole = static_cast<long long>(t->size), own = static_cast<long long>(shard(*t));
            mptrace_tensor(weight(*t), dtype, &whole, 1, MPTRACE_PARAMETER, t->name.c_str());
            if (!o_.no_master && dtype != MPTRACE_FP32)
                mptrace_tensor(master_ + t->at, MPTRACE_FP32, &own, 1, MPTRACE_MASTER, t->name.c_str());
        }
    }

    // A language with a rule: the next token follows from the one before, one time in eight it is any.
    void next_batch() {
        const int own = kBatch / o_.world;
        for (int sequence = 0; sequence < own; ++sequence) {
            Random random(1000003ull * o_.seed + 4096ull * step_ + o_.rank * own + sequence);
            int token = static_cast<int>(random.next() % kVocabulary);
            for (int t = 0; t < kContext; ++t) {
                const int next = random.next() % 8 == 0 ? static_cast<int>(random.next() % kVocabulary)
                                                        : (token * 5 + 7) % kVocabulary;
                host_->tokens[sequence * kContext + t] = token;
                host_->targets[sequence * kContext + t] = next;
                token = next;
            }
        }
        ZERO1_CHECK(cudaMemcpyAsync(tokens_, host_->tokens, rows_ * sizeof(int), cudaMemcpyHostToDevice, main_));
        ZERO1_CHECK(cudaMemcpyAsync(targets_, host_->targets, rows_ * sizeof(int), cudaMemcpyHostToDevice, main_));
    }

    // A graph repeats the first step's launches, so a step with the injected overflow is launched call by call.
    void forward_or_graph() {
        if (!o_.graph || step_ == o_.overflow_step) return forward();
        if (!graph_) {
            cudaGraph_t graph = nullptr;
            ZERO1_CHECK(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
            forward();
            ZERO1_CHECK(cudaStreamEndCapture(main_, &graph));
            ZERO1_CHECK(cudaGraphInstantiate(&graph_, graph, 0));
            ZERO1_CHECK(cudaGraphDestroy(graph));
        }
        ZERO1_CHECK(cudaGraphLaunch(graph_, main_));
    }

    void forward() {
        launch(embed_kernel<T>, rows_ * kC, main_, kept_[0].input, tokens_, weight(layout_.wte), weight(layout_.wpe),
               rows_, kContext, kC);
        for (int l = 0; l < kLayers; ++l) {
            const Range range("Layer", l);
            forward_attention(layout_.layers[l], kept_[l]);
            forward_mlp(layout_.layers[l], kept_[l], l + 1 < kLayers ? kept_[l + 1].input : last_, overflows(l));
        }
        const Range range("loss");
        launch(norm_kernel<T>, rows_, main_, normed_, mean_, rstd_, last_, weight(layout_.norm),
               weight(layout_.norm_bias), rows_, kC);
        logits();
        launch(cross_entropy_kernel<T>, rows_, main_, losses_, logits_, targets_, scale_, rows_, kVocabulary);
        launch(mean_kernel<float>, 1, main_, told_, losses_, rows_);
    }

    void forward_attention(const Layer& w, const Kept<T>& k) {
        const Range range("attention");
        launch(norm_kernel<T>, rows_, main_, k.normed1, k.mean1, k.rstd1, k.input, weight(w.norm1),
               weight(w.norm1_bias), rows_, kC);
        products_.forward(k.qkv, k.normed1, weight(w.qkv), weight(w.qkv_bias), rows_, kC, 3 * kC, main_);
        launch(attention_kernel<T>, rows_ * kHeads, main_, k.mixed, k.weights, k.qkv, rows_, kContext, kHeads,
               kC / kHeads);
        products_.forward(branch_, k.mixed, weight(w.proj), weight(w.proj_bias), rows_, kC, kC, main_);
        launch(add_kernel<T>, rows_ * kC, main_, k.middle, k.input, branch_, rows_ * kC);
    }

    void forward_mlp(const Layer& w, const Kept<T>& k, T* out, bool overflow) {
        const Range range("mlp");
        launch(norm_kernel<T>, rows_, main_, k.normed2, k.mean2, k.rstd2, k.middle, weight(w.norm2),
               weight(w.norm2_bias), rows_, kC);
        products_.forward(k.up, k.normed2, weight(w.up), weight(w.up_bias), rows_, kC, 4 * kC, main_);
        launch(gelu_kernel<T>, rows_ * 4 * kC, main_, k.active, k.up, rows_ * 4 * kC);
        float factor = 1;
        if (overflow) {
            // Finite inputs of a product that is not.
            const bool half = Names<T>::kNccl == ncclHalf;
            launch(amplify_kernel<T>, rows_ * 4 * kC, main_, k.active, half ? 0x1p10f : 0x1p100f, rows_ * 4 * kC);
            factor = half ? 0x1p15f : 0x1p100f;
        }
        products_.forward(branch_, k.active, weight(w.down), weight(w.down_bias), rows_, 4 * kC, kC, main_, factor);
        launch(add_kernel<T>, rows_ * kC, main_, out, k.middle, branch_, rows_ * kC);
    }

    // The product that goes through cuBLAS.
    void logits() {
        const float one = 1, zero = 0;
        ZERO1_CHECK(cublasGemmEx(blas_, CUBLAS_OP_T, CUBLAS_OP_N, kVocabulary, rows_, kC, &one, weight(layout_.head),
                                 Names<T>::kCublas, kC, normed_, Names<T>::kCublas, kC, &zero, logits_,
                                 Names<T>::kCublas, kVocabulary, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }

    void bias_backward(const Tensor& bias, const T* dy, int channels) {
        launch(o_.half_accumulator ? bias_backward_narrow_kernel<T> : bias_backward_kernel<T>, channels, main_,
               gradient(bias), dy, rows_, channels);
    }

    void backward() {
        const Range range("backward");
        {
            const Range loss("loss");
            products_.backward(dnarrow_, logits_, weight(layout_.head), rows_, kC, kVocabulary, main_);
            products_.weight_backward(gradient(layout_.head), logits_, normed_, rows_, kC, kVocabulary, main_);
            ZERO1_CHECK(cudaMemsetAsync(dx_, 0, rows_ * kC * sizeof(T), main_));
            launch(norm_weight_backward_kernel<T>, kC, main_, gradient(layout_.norm), gradient(layout_.norm_bias),
                   dnarrow_, last_, mean_, rstd_, rows_, kC);
            launch(norm_backward_kernel<T>, rows_, main_, dx_, dnarrow_, last_, weight(layout_.norm), mean_, rstd_,
                   rows_, kC);
        }
        for (int l = kLayers - 1; l >= 0; --l) {
            const Range layer("Layer", l);
            backward_mlp(layout_.layers[l], kept_[l]);
            backward_attention(layout_.layers[l], kept_[l]);
            reduce(layout_.layers[l].all());
        }
        launch(embed_backward_kernel<T>, (kVocabulary + kContext) * kC, main_, gradient(layout_.wte),
               gradient(layout_.wpe), tokens_, dx_, rows_, kContext, kVocabulary, kC);
        reduce(layout_.outside_layers());
        ZERO1_CHECK(cudaEventRecord(reduced_, side_));
        ZERO1_CHECK(cudaStreamWaitEvent(main_, reduced_, 0));
    }

    void backward_mlp(const Layer& w, const Kept<T>& k) {
        const Range range("mlp");
        products_.backward(dwide_, dx_, weight(w.down), rows_, 4 * kC, kC, main_);
        products_.weight_backward(gradient(w.down), dx_, k.active, rows_, 4 * kC, kC, main_);
        bias_backward(w.down_bias, dx_, kC);
        launch(gelu_backward_kernel<T>, rows_ * 4 * kC, main_, dwide2_, k.up, dwide_, rows_ * 4 * kC);
        products_.backward(dnarrow_, dwide2_, weight(w.up), rows_, kC, 4 * kC, main_);
        products_.weight_backward(gradient(w.up), dwide2_, k.normed2, rows_, kC, 4 * kC, main_);
        bias_backward(w.up_bias, dwide2_, 4 * kC);
        launch(norm_weight_backward_kernel<T>, kC, main_, gradient(w.norm2), gradient(w.norm2_bias), dnarrow_,
               k.middle, k.mean2, k.rstd2, rows_, kC);
        launch(norm_backward_kernel<T>, rows_, main_, dx_, dnarrow_, k.middle, weight(w.norm2), k.mean2, k.rstd2,
               rows_, kC);
    }

    void backward_attention(const Layer& w, const Kept<T>& k) {
        const Range range("attention");
        products_.backward(dnarrow_, dx_, weight(w.proj), rows_, kC, kC, main_);
        products_.weight_backward(gradient(w.proj), dx_, k.mixed, rows_, kC, kC, main_);
        bias_backward(w.proj_bias, dx_, kC);
        launch(attention_scores_backward_kernel<T>, rows_ * kHeads, main_, dscores_, dnarrow_, k.weights, k.qkv, rows_,
               kContext, kHeads, kC / kHeads);
        launch(attention_backward_kernel<T>, rows_ * kHeads, main_, dwide_, dscores_, dnarrow_, k.weights, k.qkv,
               rows_, kContext, kHeads, kC / kHeads);
        products_.backward(dnarrow_, dwide_, weight(w.qkv), rows_, kC, 3 * kC, main_);
        products_.weight_backward(gradient(w.qkv), dwide_, k.normed1, rows_, kC, 3 * kC, main_);
        bias_backward(w.qkv_bias, dwide_, 3 * kC);
        launch(norm_weight_backward_kernel<T>, kC, main_, gradient(w.norm1), gradient(w.norm1_bias), dnarrow_,
               k.input, k.mean1, k.rstd1, rows_, kC);
        launch(norm_backward_kernel<T>, rows_, main_, dx_, dnarrow_, k.input, weight(w.norm1), k.mean1, k.rstd1,
               rows_, kC);
    }

    // Sums the gradients of all ranks on the side stream; each rank gets its shards, in place.
    void reduce(const std::vector<const Tensor*>& tensors) {
        const Range range("reduce gradients");
        ZERO1_CHECK(cudaEventRecord(ready_, main_));
        ZERO1_CHECK(cudaStreamWaitEvent(side_, ready_, 0));
        ZERO1_CHECK(ncclGroupStart());
        for (const Tensor* t : tensors)
            ZERO1_CHECK(ncclReduceScatter(gradient(*t), gradient(*t) + o_.rank * shard(*t), shard(*t), Names<T>::kNccl,
                                          o_.average ? ncclAvg : ncclSum, comm_, side_));
        ZERO1_CHECK(ncclGroupEnd());
    }

    // Whether all gradients of all ranks are finite; the mean loss is in host_ then.
    bool read_back() {
        ZERO1_CHECK(cudaMemsetAsync(told_ + 1, 0, sizeof(float), main_));
        for (const Tensor* t : layout_.all())
            launch(find_nonfinite_kernel<T>, static_cast<int>(shard(*t)), main_, told_ + 1,
                   gradient(*t) + o_.rank * shard(*t), static_cast<int>(shard(*t)));
        const std::size_t count = o_.count_bytes ? 2 * sizeof(float) : 2;
        ZERO1_CHECK(ncclAllReduce(told_, told_, count, ncclFloat, ncclSum, comm_, main_));
        ZERO1_CHECK(cudaMemcpyAsync(&host_->loss, told_, 2 * sizeof(float), cudaMemcpyDeviceToHost, main_));
        ZERO1_CHECK(cudaStreamSynchronize(main_));
        host_->loss /= static_cast<float>(o_.world);
        return host_->nonfinite == 0;
    }

    void update(float scale) {
        const Range range("update");
        ++updates_;
        AdamW step{};
        step.rate = o_.learning_rate;
        step.factor = 1.0f / (scale * static_cast<float>(o_.average ? 1 : o_.world));
        step.correction1 = 1.0f - std::pow(0.9f, static_cast<float>(updates_));
        step.correction2 = 1.0f - std::pow(0.95f, static_cast<float>(updates_));
        for (const Tensor* t : layout_.all()) {
            const std::size_t own = t->at + o_.rank * shard(*t);
            const int n = static_cast<int>(shard(*t));
            step.decay = t->decays ? 0.1f : 0.0f;
            if (o_.no_master)
                launch(adamw_without_master_kernel<T>, n, main_, weights_ + own, m_ + t->at, v_ + t->at,
                       gradients_ + own, step, n);
            else
                launch(adamw_kernel<T>, n, main_, weights_ + own, master_ + t->at, m_ + t->at, v_ + t->at,
                       gradients_ + own, step, n);
        }
        ZERO1_CHECK(ncclGroupStart());
        for (const Tensor* t : layout_.all())
            ZERO1_CHECK(ncclAllGather(weight(*t) + o_.rank * shard(*t), weights_ + t->at, shard(*t), Names<T>::kNccl,
                                      comm_, main_));
        ZERO1_CHECK(ncclGroupEnd());
    }

    // A hash (FNV-1a) of all weights, and the part of them that the run has moved.
    void print_weights() {
        std::vector<T> now(layout_.size);
        ZERO1_CHECK(cudaMemcpyAsync(now.data(), weights_, now.size() * sizeof(T), cudaMemcpyDeviceToHost, main_));
        ZERO1_CHECK(cudaStreamSynchronize(main_));
        std::uint64_t hash = 0xCBF29CE484222325ull;
        const auto* const bytes = reinterpret_cast<const unsigned char*>(now.data());
        for (std::size_t i = 0; i < now.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
        Random random(o_.seed);
        std::size_t moved = 0;
        for (const Tensor* t : layout_.all())
            for (std::size_t i = 0; i < t->size; ++i)
                moved += widen(now[t->at + i]) != widen(narrow<T>(t->centre + t->spread * random.uniform()));
        if (o_.rank == 0 && !o_.save.empty()) {
            std::FILE* const file = std::fopen(o_.save.c_str(), "wb");
            if (!file || std::fwrite(now.data(), sizeof(T), now.size(), file) != now.size() || std::fclose(file) != 0)
                fail("fopen", o_.save.c_str());
        }
        if (o_.rank == 0)
            std::printf("weights %016llx moved %.4f\n", static_cast<unsigned long long>(hash),
                        static_cast<double>(moved) / static_cast<double>(now.size()));
    }

    const Options& o_;
    const int rows_;
    const Layout layout_;
    Arena memory_;
    Matmul products_;
    cudaStream_t main_ = nullptr, side_ = nullptr;
    cudaEvent_t ready_ = nullptr, reduced_ = nullptr;
    cudaGraphExec_t graph_ = nullptr;
    cublasHandle_t blas_ = nullptr;
    ncclComm_t comm_ = nullptr;
    Host* host_ = nullptr;
    int step_ = 0, updates_ = 0;
    T *weights_, *gradients_, *last_, *normed_, *logits_, *branch_, *dx_, *dnarrow_, *dwide_, *dwide2_, *dscores_;
    float *master_, *m_, *v_, *scale_, *losses_, *told_, *mean_, *rstd_;
    int *tokens_, *targets_;
    Kept<T> kept_[kLayers];
};

}  // namespace

void train(const Options& o) {
    if (o.world < 1 || kBatch % o.world != 0) fail("WORLD_SIZE", "not one of 1, 2, 3, 4, 6");
    const char* const local = std::getenv("LOCAL_RANK");
    int devices = 0;
    ZERO1_CHECK(cudaGetDeviceCount(&devices));
    ZERO1_CHECK(cudaSetDevice(local ? std::atoi(local) % devices : 0));
    if (o.precision == "bf16") Trainer<__nv_bfloat16>(o).run();
    else if (o.precision == "fp16") Trainer<__half>(o).run();
    else Trainer<float>(o).run();
}

}  // namespace zero1
