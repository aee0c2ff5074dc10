#pragma once

// Which precision engines a Python program has: the systems that cast, scale or shard for it.
// DeepSpeed, FSDP, Accelerate, Lightning, the Hugging Face Trainer, apex, Habana's HMP.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzer/analyses/context.hpp"
#include "analyzer/region/program.hpp"

namespace mp::lint {

enum class EngineKind : std::uint8_t {
    deepspeed,   // deepspeed.initialize, or a DeepSpeed configuration
    fsdp1,       // MixedPrecision(param_dtype=, reduce_dtype=, buffer_dtype=)
    fsdp2,       // MixedPrecisionPolicy(...)
    accelerate,  // Accelerator(mixed_precision=)
    lightning,   // Trainer(precision=)
    fabric,      // Fabric(precision=)
    hf_trainer,  // TrainingArguments(fp16=, bf16=)
    apex,        // apex.amp.initialize(opt_level=)
    hmp,         // habana_frameworks hmp.convert()
};

std::string_view name_of(EngineKind);  // "DeepSpeed", as its users call it

struct Engine {
    EngineKind kind = EngineKind::deepspeed;
    const Function* function = nullptr;  // where it is set up
    const Call* call = nullptr;          // nullptr: set in a configuration file
    SourceSpan at;
    // The dtype it computes in: fp16, bf16, fp32 when it does not lower anything, unknown when the argument
    // is not constant.
    DType dtype = DType::unknown;
    bool weights = false;           // the parameters themselves are in dtype: "16-true", DeepSpeed
    bool autocasts = false;         // it opens torch.autocast itself: "16-mixed", Accelerate
    bool scales = false;            // with fp16 it scales the loss itself
    DType reduce = DType::unknown;  // FSDP: of gradient reduction; unknown: as the parameters
    DType buffer = DType::unknown;  // FSDP1: of buffers
    // FSDP: a wrapped module gets this policy. off: nothing in the program takes a policy, or what takes it never
    // trains.
    Switch used = Switch::on;
};

// Every engine that the program sets up, in the order of its functions.
std::vector<Engine> engines_of(const Program&);
// The same, found at the first call for a context and kept with it.
const std::vector<Engine>& engines_of(const RuleContext&);

const Engine* find_engine(const std::vector<Engine>&, EngineKind);

// A trainer of transformers or trl.
bool is_hf_trainer(std::string_view class_name);
// What a trainer of transformers or trl, or a class of the program that derives from one, is made with: its model, and
// its settings, made in the same function, or parsed there from a command line. Nothing where more than these decides
// what is trained and how: an adapter, own optimizers, DeepSpeed, FSDP, arguments that are unpacked, or a trainer that
// only predicts.
struct PlainTrainer {
    const Operand* model = nullptr;
    const Call* settings = nullptr;
    bool is_parsed = false;  // the command line decides
};
std::optional<PlainTrainer> plain_trainer(const Function&, const Call&);
// TrainingArguments(fp16=True), or fp16=torch.cuda.is_available().
bool asks_for_fp16(const Function&, const Call& arguments);

// The Trainer that the call makes takes no step: trainer.predict(data) alone, and no other function gets it.
bool only_predicts(const Function&, const Call& trainer);

// A function that sets its model to eval() and never to train() runs it, whatever trains elsewhere.
bool only_runs(const Function&);
// Something that calls the function, or that runs from there, trains.
bool is_run_in_training(const Program&, const Function&);
// Nothing that calls the function, and nothing that runs from there, trains. False where no call is known.
bool only_serves_inference(const Program&, const Function&);

// "bf16" of the spellings of Lightning, Fabric and Accelerate ("bf16-mixed", "16", "fp16", ...).
struct Precision {
    DType dtype = DType::unknown;
    bool weights = false;
};
Precision precision_named(std::string_view spelling);

}  // namespace mp::lint
