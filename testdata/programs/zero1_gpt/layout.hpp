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
    std::string name;
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
        place(wte, "wte", kVocabulary * c, 0.08f);
        place(wpe, "wpe", kContext * c, 0.08f);
        for (int i = 0; i < kLayers; ++i) {
            Layer& l = layers[i];
            const std::string layer = "Layer " + std::to_string(i), attention = layer + "/attention/", mlp = layer + "/mlp/";
            place(l.norm1, attention + "norm", c, 0, 1);
            place(l.norm1_bias, attention + "norm_bias", c);
            place(l.qkv, attention + "qkv", 3 * c * c, 0.12f);
            place(l.qkv_bias, attention + "qkv_bias", 3 * c);
            place(l.proj, attention + "proj", c * c, kDeep);
            place(l.proj_bias, attention + "proj_bias", c);
            place(l.norm2, mlp + "norm", c, 0, 1);
            place(l.norm2_bias, mlp + "norm_bias", c);
            place(l.up, mlp + "up", 4 * c * c, 0.12f);
            place(l.up_bias, mlp + "up_bias", 4 * c);
            place(l.down, mlp + "down", 4 * c * c, kDeep);
            place(l.down_bias, mlp + "down_bias", c);
        }
        place(norm, "norm", c, 0, 1);
        place(norm_bias, "norm_bias", c);
        place(head, "head", kVocabulary * c, 0.12f);
    }
    std::vector<const Tensor*> outside_layers() const { return {&wte, &wpe, &norm, &norm_bias, &head}; }
    std::vector<const Tensor*> all() const {
        std::vector<const Tensor*> list = outside_layers();
        for (const Layer& l : layers)
            for (const Tensor* t : l.all()) list.push_back(t);
        return list;
    }

private:
    void place(Tensor& t, const std::string& name, std::size_t elements, float spread = 0, float centre = 0) {
        t = {size, elements, spread, centre, spread > 0, name};
        size += elements;
    }
};

}  // namespace zero1
