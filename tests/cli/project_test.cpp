// What mp-lint makes of the texts and settings of a whole project.

#include "tests/cli/cli_fixture.hpp"

namespace mp::lint {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPolicy = R"(import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision


def wrap(model):
    policy = MixedPrecision(param_dtype=torch.float16, reduce_dtype=torch.float16)
    return FSDP(model, mixed_precision=policy)
)";
constexpr const char* kOption = R"(import argparse
import torch


def main(args, batches):
    model = torch.nn.Linear(8, 8).cuda()
    if args.low:
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for x in batches:
        model(x).square().mean().backward()
        optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--low", action="store_true")
main(parser.parse_args(), [])
)";
constexpr const char* kTable = R"(import argparse
import numpy as np
import torch


def main(args, path):
    chosen = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[args.dtype]
    net = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    context = torch.autocast("cuda", dtype=chosen)
    for x in np.fromfile(path, dtype=np.float32):
        with context:
            loss = net(torch.tensor(x, dtype=torch.float32)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


parser = argparse.ArgumentParser()
parser.add_argument("--dtype", type=str, default="float32")
main(parser.parse_args(), "x.bin")
)";
constexpr const char* kLogits = R"(import torch
import torch.nn.functional as F
from transformers import AutoModelForCausalLM


def train(name, batches):
    model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters())
    for x, labels in batches:
        chosen = F.log_softmax(model(x).logits, dim=-1).gather(-1, labels)
        (-chosen.mean()).backward()
        optimizer.step()


train("gpt2", [])
)";
constexpr const char* kLibrary = R"(import torch
from torch import Tensor, nn


class Pool(nn.Module):
    def forward(self, x, index, n):
        out = x.new_zeros(n, x.shape[1])
        return out.index_add_(0, index, x)


def sums(values: Tensor, segment_ids: Tensor):
    return torch.zeros_like(values).scatter_add_(0, segment_ids, values)


def positive(values, ids, weights):
    kept = torch.relu(values)
    return torch.zeros_like(kept).scatter_add_(0, ids, weights.type_as(kept))


def counts(order: Tensor):
    return torch.zeros_like(order).scatter_add_(0, order, order)


def exact(x: Tensor, index):
    wide = x.float()
    return torch.zeros_like(wide).index_add_(0, index, wide)


def hits(mask: Tensor, index):
    return torch.zeros_like(mask).index_add_(0, index, mask)
)";

// Each line is on with the cache of the one before.
TEST_F(Cli, WhatNothingInAWholeProjectCallsIsANote) {
    write("p/.git/HEAD", "");
    write("p/sharded.py", kPolicy);
    EXPECT_THAT(levels("."), ElementsAre("MP409 note"));
    EXPECT_THAT(levels("sharded.py"), ElementsAre("MP409 warning"));
    // A file that has no facts, because it names nothing of torch.
    write("p/start.py", "import sharded\n\n\ndef go(model):\n    return sharded.wrap(model)\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 warning"));
    write("p/start.py", "import numpy\n\n\ndef go(model):\n    return numpy.mean(model)\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 note"));
    // One that has facts, and may call what it imports by a string.
    write("p/start.py", "import torch\nimport sharded\n\n\ndef go(text):\n    return eval(text)\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 warning"));
    write("p/start.py", "import torch\n\n\ndef go(text):\n    return eval(text)\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 note"));
    write("p/pyproject.toml", "[build-system]\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 warning"));
    write("p/sum.cu", kDefect);
    EXPECT_THAT(levels("."), ElementsAre("MP409 warning", "MP401 note"));
    write("p/bind.cpp",
          "struct __half; __half sum(const __half*); void add(void*); void go() { add((void*)&sum); }\n");
    EXPECT_THAT(levels("."), ElementsAre("MP409 warning", "MP401 error"));
}

TEST_F(Cli, AnOptionThatNothingInAWholeProjectGivesIsOff) {
    const auto optimizer = [&] { return levels(". --select MP501"); };
    write("p/.git/HEAD", "");
    write("p/train.py", kOption);
    EXPECT_THAT(optimizer(), ElementsAre("MP501 note"));
    EXPECT_THAT(levels("train.py --select MP501"), ElementsAre("MP501 warning")) << "scripts are not known";
    write("p/tests/run.sh", "python train.py --low\n");
    EXPECT_THAT(optimizer(), ElementsAre("MP501 note"));
    write("p/run.sh", "python train.py --low\n");
    EXPECT_THAT(optimizer(), ElementsAre("MP501 warning"));
    write("p/run.sh", "python train.py\n");
    EXPECT_THAT(optimizer(), ElementsAre("MP501 note"));
    write("p/sweep.py", "import train\n\n\ndef go(args):\n    args.low = True\n    train.main(args, [])\n");
    EXPECT_THAT(optimizer(), ElementsAre("MP501 warning"));
}

TEST_F(Cli, AnOlderTransformersReturnsLogitsInFp32) {
    const auto softmax = [&] { return levels(". --select MP102"); };
    write("p/.git/HEAD", "");
    write("p/train.py", kLogits);
    EXPECT_THAT(softmax(), Contains("MP102 warning"));
    write("p/requirements.txt", "transformers==4.45.2\n");
    EXPECT_THAT(softmax(), Not(Contains("MP102 warning")));
    write("p/requirements.txt", "transformers==4.46.0\n");
    EXPECT_THAT(softmax(), Contains("MP102 warning"));
}

// Who asks for fp16 by hand makes the scaler himself.
TEST_F(Cli, Fp16InATableThatNoTextChoosesNeedsNoScaler) {
    const auto scaler = [&] { return levels(". --select MP201"); };
    write("p/.git/HEAD", "");
    write("p/train.py", kTable);
    EXPECT_THAT(scaler(), ElementsAre("MP201 note"));
    write("p/run.sh", "python train.py --dtype bfloat16\n");
    EXPECT_THAT(scaler(), ElementsAre("MP201 note"));
    write("p/run.sh", "python train.py --dtype float16\n");
    EXPECT_THAT(scaler(), ElementsAre("MP201 warning"));
}

// Nothing in a library says what its users pass.
TEST_F(Cli, AnAssumptionAsksWhatBreaksInHalf) {
    write("p/lib.py", kLibrary);
    EXPECT_EQ(stubs("lib.py").code, 0);
    const Outcome o = stubs("--assume bf16 lib.py");
    EXPECT_EQ(o.code, 1);
    EXPECT_THAT(o.out, AllOf(HasSubstr("lib.py:8:"), HasSubstr("lib.py:12:"), HasSubstr("lib.py:17:"),
                             HasSubstr("3 warnings")));
    EXPECT_THAT(o.out, HasSubstr("'x' is taken as bf16 (--assume)"));
    write("p/mp-lint.toml", "assume = \"fp16\"\n");
    EXPECT_THAT(stubs("lib.py").out, HasSubstr("in fp16"));
    // What a caller of the program passes is known.
    write("p/mp-lint.toml", "");
    write("p/lib.py", std::string(kLibrary) + "\n\nsums(torch.ones(9), torch.zeros(9, dtype=torch.int64))\n");
    EXPECT_THAT(stubs("--assume bf16 lib.py").out, HasSubstr("(1 warning)"));
}

TEST_F(Cli, AProjectThatNamesNoOlderDeviceNeedsNoStricterQuestion) {
    const auto question = [&] { return levels(". --select MP604"); };
    write("p/.git/HEAD", "");
    write("p/train.py",
          "import torch\n\ndtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16\n"
          "model = torch.nn.Linear(8, 8).to(dtype)\n");
    EXPECT_THAT(levels("train.py --select MP604"), ElementsAre("MP604 warning")) << "texts are not read";
    EXPECT_THAT(question(), ElementsAre("MP604 note"));
    write("p/README.md", "Trained on 8xA100.\n");
    EXPECT_THAT(question(), ElementsAre("MP604 note"));
    write("p/demo.ipynb",
          R"({"cells": [{"cell_type": "code", "source": ["from google.colab import drive"]}]})");
    EXPECT_THAT(question(), ElementsAre("MP604 warning"));
}

TEST_F(Cli, Fp16ThatNoNamedDeviceChoosesNeedsNoScaler) {
    const auto scaler = [&] { return levels(". --select MP201"); };
    write("p/.git/HEAD", "");
    write("p/train.py",
          "import torch\n\n\ndef train(model, loader):\n"
          "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
          "    low = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16\n"
          "    for x in loader:\n        optimizer.zero_grad()\n"
          "        with torch.autocast('cuda', dtype=low):\n            loss = model(x).sum()\n"
          "        loss.backward()\n        optimizer.step()\n\n\n"
          "train(torch.nn.Linear(8, 8), [torch.ones(8)])\n");
    EXPECT_THAT(scaler(), ElementsAre("MP201 warning"));
    write("p/README.md", "Trained on an A100.\n");
    EXPECT_THAT(scaler(), ElementsAre("MP201 note"));
    write("p/README.md", "Trained on an A100, and a V100.\n");
    EXPECT_THAT(scaler(), ElementsAre("MP201 warning"));
}

TEST_F(Cli, AScriptThatPassesDeepSpeedKeepsMastersOfAdapters) {
    const auto weights = [&] { return levels(". --select MP501"); };
    write("p/.git/HEAD", "");
    write("p/train.py",
          "import torch\nfrom peft.tuners.lora import LoraLayer\n\n\ndef adapt(model):\n"
          "    for name, module in model.named_modules():\n        if isinstance(module, LoraLayer):\n"
          "            module.to(torch.bfloat16)\n\n\nadapt(torch.load('m'))\n");
    EXPECT_THAT(weights(), ElementsAre("MP501 warning"));
    write("p/run.sh", "torchrun train.py --deepspeed zero2.json\n");
    EXPECT_THAT(weights(), ElementsAre("MP501 note"));
    write("p/run.sh", "torchrun train.py\n");
    EXPECT_THAT(weights(), ElementsAre("MP501 warning"));
}

TEST_F(Cli, WhatOnlyProgramsThatMeasureRunIsANote) {
    const auto products = [&] { return levels(". --select MP407"); };
    write("p/.git/HEAD", "");
    write("p/src/product.cuh",
          "#pragma once\n#include <cuda_fp16.h>\n#include <mma.h>\n"
          "__global__ void product(half* out) {\n"
          "    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, half> sum;\n"
          "    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, half, nvcuda::wmma::row_major> x;\n"
          "    nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::row_major> y;\n"
          "    nvcuda::wmma::fill_fragment(sum, __float2half(0.0f));\n"
          "    for (int i = 0; i < 64; ++i) nvcuda::wmma::mma_sync(sum, x, y, sum);\n"
          "    nvcuda::wmma::store_matrix_sync(out, sum, 16, nvcuda::wmma::mem_row_major);\n}\n"
          "inline void run(half* out) { product<<<1, 32>>>(out); }\n");
    const auto program = [](const std::string& body) {
        return "#include \"product.cuh\"\ntypedef void (*Run)(half*);\n"
               "struct Entry { Run run; };\nconst Entry kTable[] = {{run}};\n"
               "int main() {\n    half* out;\n    cudaMalloc((void**)&out, 512);\n" +
               body + "}\n";
    };
    const std::string times =
        "    cudaEvent_t a, b;\n    float ms;\n    kTable[0].run(out);\n"
        "    cudaEventElapsedTime(&ms, a, b);\n";
    write("p/src/main.cu", program(times));
    EXPECT_THAT(products(), ElementsAre("MP407 note"));
    write("p/src/main.cu", "#include <cstdio>\n" + program("    FILE* f = fopen(\"w\", \"rb\");\n"
                                                           "    fread(out, 2, 256, f);\n" +
                                                           times));
    EXPECT_THAT(products(), ElementsAre("MP407 warning"));
}

}  // namespace
}  // namespace mp::lint
