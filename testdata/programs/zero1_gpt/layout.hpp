#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zero1 {

// Every size is divisible by 1, 2, 3, 4 and 6, so that each tensor has equal shards.
inline constexpr int kVocabulary = 96, kContext = 16, kChannels = 48, kHeads = 3, kLayers = 2, kBatch = 12;

struct Tensor {
    std::size_t at = 0, size = 0;  // in elements, in the arenas of weights and of gradients
    float spread = 0;              // of the first values: 0 is zeros
    float centre = 0;
    bool decays = false;
};

struct Layer {
    Tensor norm1, norm1_bias, qkv, qkv_bias, proj, proj_bias;
    Tensor norm2, norm2_bias, up, up_bias, down, down_bias;

    std::vector<const Tensor*> all() const {
        return {&norm1, &norm1_bias, &qkv, &qkv_bias, &proj, &proj_bias,
                &norm2, &norm2_bias, &up,  &up_bias,  &down, &down_bias};
    }
};

// Where each tensor of the model is.
struct Layout {
    Tensor wte, wpe, norm, norm_bias, head;
    Layer layers[kLayers];
    std::size_t size = 0;

    Layout() {
        constexpr std::size_t c = kChannels;
        constexpr float kDeep = 0.06f;
        place(wte, kVocabulary * c, 0.08f);
        place(wpe, kContext * c, 0.08f);
        for (Layer& l : layers) {
            place(l.norm1, c, 0, 1);
            place(l.norm1_bias, c);
            place(l.qkv, 3 * c * c, 0.12f);
            place(l.qkv_bias, 3 * c);
            place(l.proj, c * c, kDeep);
            place(l.proj_bias, c);
            place(l.norm2, c, 0, 1);
            place(l.norm2_bias, c);
            place(l.up, 4 * c * c, 0.12f);
            place(l.up_bias, 4 * c);
            place(l.down, 4 * c * c, kDeep);
            place(l.down_bias, c);
        }
        place(norm, c, 0, 1);
        place(norm_bias, c);
        place(head, kVocabulary * c, 0.12f);
    }
    std::vector<const Tensor*> outside_layers() const { return {&wte, &wpe, &norm, &norm_bias, &head}; }
    std::vector<const Tensor*> all() const {
        std::vector<const Tensor*> list = outside_layers();
        for (const Layer& l : layers)
            for (const Tensor* t : l.all()) list.push_back(t);
        return list;
    }

private:
    void place(Tensor& t, std::size_t elements, float spread = 0, float centre = 0) {
        t = {size, elements, spread, centre, spread > 0};
        size += elements;
    }
};

}  // namespace zero1
