#pragma once

// The facts model: what mp-lint extracts from source code. Plain data, printable and readable back
// (docs/facts_format.md), the same for C++, CUDA and Python. Front ends write it, the link stage
// joins it, rules read it. Nothing here depends on a compiler.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/op.hpp"
#include "kernels/numerics/source_span.hpp"

namespace mp::lint {

inline constexpr int kFactsVersion = 2;
inline constexpr std::int32_t kNone = -1;

// How a value is held. For `vec`, a packed pair (half2), the dtype is the element's. `module` is a
// torch.nn.Module; its dtype is that of its floating parameters. `parameters` is the result of its
// parameters(). `dtype` is a dtype object such as torch.float16.
enum class Shape : std::uint8_t {
    scalar,
    vec,
    pointer,
    array,
    tensor,
    options,
    object,
    other,
    module,
    parameters,
    dtype,
};

// Numerical meaning of a value. It is derived from local definitions, never from the value's name.
enum class Stat : std::uint8_t { none, sum, sum_of_squares, mean, variance, rstd };

// One value: an argument, the source of a cast, a result.
struct Operand {
    DType dtype = DType::unknown;  // of the element, for pointers, arrays, vectors and tensors
    Shape shape = Shape::scalar;
    Stat stat = Stat::none;
    bool assumed = false;        // a default decides it, which a caller, an option or a file can change
    std::int32_t param = kNone;  // the operand is this parameter of the enclosing function, unchanged
                                 // (0-based)
    std::int32_t call = kNone;   // the operand is the result of this call (index in Function::calls)
    Symbol name;                 // variable or member it names ("acc", "this->scale"), else empty
    Symbol constant;             // enumerator ("CUDA_R_16F"), number ("1e-08"), "true", "nullptr"; else empty
    Symbol text;                 // source spelling, blanks collapsed, at most 80 bytes
    Symbol keyword;              // Python: the argument is passed by this name ("dtype"), or "*", "**"
    SourceSpan span;             // Python: the place in the source, for fixes
    Symbol alternative;          // its value on one branch: a number, c ? x : 1.0f, or a low dtype
    Symbol refers;  // Python: what it names outside this function (docs/facts_format.md, "Names")

    friend bool operator==(const Operand&, const Operand&) = default;
};

struct TemplateArgument {
    Symbol text;  // "__half", "16", "nvcuda::wmma::accumulator"
    DType dtype = DType::unknown;
    Shape shape = Shape::other;

    friend bool operator==(const TemplateArgument&, const TemplateArgument&) = default;
};

enum class CallKind : std::uint8_t {
    function,
    method,       // args[0] is the receiver
    constructor,  // of a class object; `result` is the object
    destructor,   // also implicit ones at the end of a scope, in the block where the object dies
    kernel,       // a launch: kernel<<<...>>>(args)
    op,           // an overloaded operator on tensors: name "operator+"
    assembly,     // inline asm: name "asm", args[0].constant is the template text
};

// One evaluated call. The calls of a function are in evaluation order within their block.
struct Call {
    SourceSpan span;
    CallKind kind = CallKind::function;
    Symbol callee;  // USR of the function it resolves to; empty when unresolved
    Symbol name;    // qualified, without template arguments: "at::autocast::set_enabled", "__hadd"
    Op op;          // canonical op, unknown for other functions
    std::vector<TemplateArgument> template_args;  // of the function, then of its class
    std::vector<Operand> args;
    Operand result;
    Symbol macro;             // outermost macro it was written through ("RG_AUTOCAST_ON"), else empty
    std::uint32_t block = 0;  // in Function::flow
    std::uint16_t loop_depth = 0;
    bool in_place = false;
    // Python: of a cast or a question: nothing reads the result, or only messages depend on it.
    bool unused = false;
    // Python: the installed version decides whether it runs. It is in a handler of exceptions, or in a branch
    // that hasattr() or a version chooses.
    bool by_version = false;
    std::vector<Symbol> lambdas;  // USRs of lambdas passed as arguments: the callee may call them

    friend bool operator==(const Call&, const Call&) = default;
};

enum class CastForm : std::uint8_t {
    implicit,     // the language inserted it: converting constructor, conversion operator
    explicit_,    // static_cast<T>(x), (T)x, T(x)
    intrinsic,    // __float2half, __half2float, ...
    assign,       // operator=(float) of a half class
    reinterpret,  // of storage: int4* as half*
};

// Where the value of a cast goes.
enum class Purpose : std::uint8_t { none, init, store, operand, argument, result, accumulate };

// What a constant is used for. It is derived from the use, never from a name.
enum class Role : std::uint8_t {
    none,
    added,         // operand of + or -: x + eps
    clamp,         // bound of max, min, clamp
    max_identity,  // start value of a max or min reduction, and nothing else
    mask_fill,     // fills or replaces masked scores
    divisor,
    multiplier,
    compared,
};

// A change of element dtype between two floating formats, or from integer to floating.
struct Cast {
    SourceSpan span;
    DType from = DType::unknown;
    DType to = DType::unknown;
    CastForm form = CastForm::implicit;
    Purpose purpose = Purpose::none;
    Role role = Role::none;      // of a constant source
    Operand source;              // source.constant holds the number when it is one
    Symbol target;               // lvalue that receives it ("var[blockIdx.x]"), when there is one
    Symbol function;             // for Purpose::argument: qualified name of the callee
    std::int32_t inner = kNone;  // the source is itself this cast (index in Function::casts)
    bool in_loop = false;
    bool loop_index = false;  // the integer source is a loop counter, thread index or position
    bool output = false;      // stored through a pointer parameter: a kernel's final store
    std::uint64_t bound = 0;  // largest |value| an integer source can have, 0 when not known
    Symbol macro;
    bool unsaturated = false;  // a conversion that does not saturate: values beyond the format become NaN
                               // or inf

    friend bool operator==(const Cast&, const Cast&) = default;
};

enum class AccumulateOp : std::uint8_t { add, fma, subtract, multiply, max, min, other };
enum class AccumulateForm : std::uint8_t {
    compound,  // acc += x
    assign,    // acc = acc + x, acc = __hadd(acc, x), acc = adder(acc, x)
    call,      // update(&acc, x): the callee adds through its pointer
    tree,      // s[t] += s[t + stride], stride halving; warp shuffles
    member,    // this->sum += x across calls of the method
};
enum class Storage : std::uint8_t { local, array, shared, global, member, parameter };

// A read-modify-write that runs repeatedly: in a loop, or as a step of a tree reduction.
struct Accumulation {
    SourceSpan span;      // the update
    SourceSpan declared;  // the accumulator's declaration
    Symbol name;
    DType dtype = DType::unknown;    // of the accumulator
    DType element = DType::unknown;  // of what is added, before any cast
    Shape shape = Shape::scalar;
    AccumulateOp op = AccumulateOp::add;
    AccumulateForm form = AccumulateForm::compound;
    Storage storage = Storage::local;
    Stat stat = Stat::sum;    // or sum_of_squares of squares, or mean of terms that a running product weights
    std::uint64_t trips = 0;  // product of the trip counts of the loops around it; 0: one is not a constant
    std::uint64_t at_least = 0;  // ... of those that are constant; 0: some round of them may add nothing
    bool shared = false;  // the loops of unknown count step over the threads: one thread adds its share
    std::uint16_t loop_depth = 0;
    Symbol through;             // qualified name of the helper that adds ("hadd2"), if one does
    SourceSpan through_span;    // where the helper adds
    std::int32_t call = kNone;  // Python: the addition (index in Function::calls)

    friend bool operator==(const Accumulation&, const Accumulation&) = default;
};

// A store of a low-precision value through a pointer, where the new value depends on the old one
// and is not a running sum: param[i] = (half)(param[i] - lr * g). It is a weight update or an
// average (EMA).
struct Update {
    SourceSpan span;
    Symbol target;                    // "params_memory[idx]"
    std::int32_t param = kNone;       // pointer parameter it stores through
    DType dtype = DType::unknown;     // stored
    DType computed = DType::unknown;  // of the arithmetic before the store
    bool subtracts = false;           // old - something
    bool interpolates = false;        // d * old + (1 - d) * new
    bool adds_a_square = false;       // ... where new is a square: a second moment
    bool has_master = false;          // the same value is also stored in fp32 through another pointer
    bool master_optional = false;     // ... only when that pointer is not null
    bool compensated = false;         // stochastic rounding or a Kahan residual is visible here
    Symbol through;                   // qualified name of the helper that stores, if one does
    Symbol through_usr;

    friend bool operator==(const Update&, const Update&) = default;
};

// A value in fp16 or bf16 memory is multiplied or divided by a factor that is the same for every
// element: a loss scale. `stored`: the product is written to memory. Otherwise the value is read
// from memory, where an optimizer reads a gradient.
struct Scaling {
    SourceSpan span;               // the product or quotient; when stored, the store
    Symbol target;                 // the value in memory: "gradients[i]"
    std::int32_t param = kNone;    // pointer parameter behind it
    DType dtype = DType::unknown;  // dtype in memory
    Operand factor;                // a scalar parameter or a number
    bool divides = false;
    bool stored = false;     // the product is stored there; false: the value is read from there
    bool averages = false;   // the value read goes into a running average: d * old + (1 - d) * new
    bool subtracts = false;  // ... or is subtracted from the value it replaces: old - something

    friend bool operator==(const Scaling&, const Scaling&) = default;
};

// A type whose template arguments fix a computation: wmma::fragment<accumulator, 16, 16, 16, __half>,
// cub::BlockReduce<__half, 256>, or an alias a library reads (ElementAccumulator = half_t).
struct TypeUse {
    SourceSpan span;
    Symbol name;  // qualified template or alias name
    std::vector<TemplateArgument> args;
    Symbol alias;  // the name that this typedef or alias gives it, if any

    friend bool operator==(const TypeUse&, const TypeUse&) = default;
};

// A value given to a name that other code reads: an attribute of a library
// ("torch.backends.cuda.matmul.allow_tf32"), an environment variable ("os.environ.NAME"), a
// flattened key of a configuration ("fp16.enabled"). In __init__ also the attributes ("self.model")
// that only __init__ sets and that facts of other functions use.
struct Setting {
    SourceSpan span;
    Symbol key;
    Operand value;
    std::uint32_t block = 0;  // in Function::flow

    friend bool operator==(const Setting&, const Setting&) = default;
};

// Python: the value that a module or a class binds to a name which other code can read. `assumed` when code
// that makes an object can give another one (a field of a dataclass).
struct Definition {
    SourceSpan span;
    Symbol name;  // qualified: "pkg.settings.DTYPE", "pkg.Config.eps"
    Operand value;

    friend bool operator==(const Definition&, const Definition&) = default;
};

struct Parameter {
    Symbol name;
    DType dtype = DType::unknown;
    Shape shape = Shape::scalar;
    Symbol constant{};  // Python: its default value, in one of the two forms of an operand
    Symbol refers{};

    friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Edge {
    std::uint32_t to = 0;
    // The branch condition on this edge as normalised text, only when nothing it reads can change
    // between two evaluations in the function; equal text means equal value. Empty: not known.
    Symbol condition;
    bool when = true;     // taken when the condition is this
    bool raises = false;  // Python: taken when a statement before it raises; it leads to a handler

    friend bool operator==(const Edge&, const Edge&) = default;
};

struct Block {
    SourceSpan span;  // of the return or throw, when it leaves
    std::vector<Edge> to;
    // The function returns or throws here. If there are edges too, it leaves when none of them is
    // taken. Without edges and with `leaves` false, control never comes out (abort, an endless
    // loop).
    bool leaves = false;

    friend bool operator==(const Block&, const Block&) = default;
};

enum class FunctionKind : std::uint8_t { host, device, host_device, kernel, lambda, python };

// One function body: a plain function, or one concrete instantiation of a template. Uninstantiated
// templates have no facts; they are counted in Coverage.
// Python: another name for an object. A local variable that is bound once, to a name, an attribute, or an item
// at a constant place; or the target of a `for`.
struct Alias {
    Symbol name;
    Symbol of;          // "self.scaler", "state['opt']"; of an item the container; empty: not a plain name
    bool item = false;  // it is each item of the container in turn

    friend bool operator==(const Alias&, const Alias&) = default;
};

struct Function {
    Symbol usr;      // stable across units; instantiations differ
    Symbol name;     // qualified: "layer_norm"
    Symbol display;  // with template arguments: "layer_norm<__half>"
    FunctionKind kind = FunctionKind::host;
    SourceSpan span;            // of its name
    SourceSpan instantiated;    // first point of instantiation; unknown for plain functions
    Symbol parent_class;        // qualified class of a method
    std::vector<Symbol> bases;  // Python: qualified direct bases of that class
    std::vector<TemplateArgument> template_args;
    std::vector<Parameter> params;
    DType returns = DType::unknown;
    // [[clang::annotate("...")]] of the function, "mp::low_precision"; in Python its decorators,
    // names resolved, with their arguments: "torch.amp.custom_fwd(device_type='cuda')".
    std::vector<Symbol> annotations;
    bool is_virtual = false;
    std::vector<Symbol> overrides;  // USRs of the methods it overrides
    // C++: a plain function that is not extern "C", and that nothing names besides its declarations. Of functions
    // other than kernels only those of the main file, if no header declares them.
    bool is_unnamed = false;
    std::vector<Alias> aliases;

    std::vector<Call> calls;
    std::vector<Cast> casts;
    std::vector<Accumulation> accumulations;
    std::vector<Update> updates;
    std::vector<Scaling> scalings;
    std::vector<TypeUse> types;
    std::vector<Setting> settings;
    std::vector<Definition> definitions;  // Python: of modules and classes
    std::vector<Block> flow;              // empty: one straight block 0
    std::vector<Operand> returned;        // values of the `return` statements, one per statement

    friend bool operator==(const Function&, const Function&) = default;
};

// How much of a unit was analysed.
struct Coverage {
    std::uint32_t functions = 0;       // bodies analysed, instantiations counted one by one
    std::uint32_t statements = 0;      // in them
    std::uint32_t unresolved = 0;      // expressions the compiler could not type (RecoveryExpr)
    std::uint32_t uninstantiated = 0;  // templates without an instantiation
    std::uint32_t errors = 0;          // diagnostics that are not known to be harmless
    std::uint32_t benign_errors = 0;
    std::vector<Symbol> missing_headers;
    std::vector<Symbol> messages;  // the first few errors, "file:line:col: text"

    friend bool operator==(const Coverage&, const Coverage&) = default;
};

enum class Language : std::uint8_t { cpp, cuda, python };
// ok: parsed cleanly · partial: errors, analysed as far as the tree goes · failed: nothing was
// analysed · timeout · crashed.
enum class UnitState : std::uint8_t { ok, partial, failed, timeout, crashed };

struct Dependency {
    Symbol path;
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::uint64_t hash = 0;  // XXH3 of the content

    friend bool operator==(const Dependency&, const Dependency&) = default;
};

struct Unit {
    Symbol path;  // main file
    Language language = Language::cpp;
    UnitState state = UnitState::ok;
    Symbol headers;              // "toolkit 13.0", "stubs": which CUDA headers were used; empty for C++
    std::vector<Symbol> passes;  // "host", "device sm_80"
    std::vector<Symbol> flags;   // numerics flags recorded, not forwarded: "--use_fast_math", "-ftz=true"
    // Python: what is used otherwise than by a call, of modules and classes: "ext.run" in {"a": ext.run}; and objects
    // of a module that its code names. In order.
    std::vector<Symbol> taken;
    Coverage coverage;
    std::vector<Function> functions;
    std::vector<Dependency> dependencies;  // every file it read

    friend bool operator==(const Unit&, const Unit&) = default;
};

}  // namespace mp::lint
