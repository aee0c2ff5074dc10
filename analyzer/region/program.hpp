#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "analyzer/region/bindings.hpp"
#include "analyzer/region/call_index.hpp"
#include "kernels/base/result.hpp"

namespace mp::lint {

struct Note {
    SourceSpan span;
    std::string text;
    bool of_region = false;  // one of the ways into the region; the program may have others

    friend bool operator==(const Note&, const Note&) = default;
};

enum class Switch : std::uint8_t { off, on, unknown };

// The autocast state in which a call can run, with the path that makes it true.
struct Context {
    Switch enabled = Switch::off;
    DType dtype = DType::unknown;  // the region's low-precision dtype
    Symbol device;                 // "cuda", "cpu", "xpu", ...; empty: not known
    SourceSpan opened;             // where the region opens
    Symbol opener;                 // "at::autocast::set_enabled", "AutocastGuard", "mp::low_precision"
    bool proven = false;           // every step of the path is resolved, and no condition is open
    Symbol condition;              // the flag under which it is open, when it is conditional
    std::vector<Note> chain;       // from the opener to this function: one note per call, in call order
    // Whether gradients are recorded here: off when every known path is under no_grad or
    // inference_mode, on when none is.
    Switch grad = Switch::on;
    // Opened once for the whole program (hmp.convert, amp.initialize): backward and optimizer steps
    // are inside by design.
    bool process_wide = false;
    bool framework = false;  // opened by a trainer around a method it calls (training_step, forward)
};

// Names the user adds in mp-lint.toml [regions]: classes and functions that open or close a region,
// and functions whose bodies run in one.
struct RegionConfig {
    std::vector<std::string> guards;     // RAII classes
    std::vector<std::string> enter;      // functions that open
    std::vector<std::string> leave;      // functions that close
    std::vector<std::string> functions;  // their bodies are low-precision
    DType dtype = DType::fp16;           // dtype of these regions when the source does not give one
};

struct ResolvedDType {
    DType dtype = DType::unknown;
    std::vector<Note> chain;  // where it was decided, when that is another function
};

// A region opened and not closed on some way out of a function (for MP110).
struct RegionLeak {
    const Function* function = nullptr;
    const Call* opened = nullptr;
    SourceSpan leaves;                  // the return, throw or end of function reached with it open
    bool restored_to_constant = false;  // closed, but to `false` although it could have been on before
    bool process_wide = false;          // main opens it and nothing ever closes it
    std::vector<Note> path;             // conditions taken
};

// All units linked: symbols resolved across files, regions and dtypes propagated over the call
// graph. Immutable after link(). Pointers into it are valid as long as it lives.
class Program {
public:
    // Links the units, on up to `threads` threads. Facts that several units share (headers) are
    // kept once per instantiation.
    static Program link(std::vector<Unit> units, const RegionConfig& config = {}, int threads = 1);

    Program(Program&&) noexcept;
    Program& operator=(Program&&) noexcept;
    ~Program();

    std::span<const Unit> units() const;
    std::span<const Function* const> functions() const;  // each once, ordered by file, line, display
    const CallIndex& calls() const;                      // of all functions
    const Function* definition(Symbol usr) const;        // nullptr: the body is not in the program
    std::span<const Call* const> callers(Symbol usr) const;
    const Function* owner(const Call&) const;  // the function a call belongs to

    // Every distinct autocast state in which this call can run; never empty. A caller outside the
    // program counts as "off".
    std::span<const Context> contexts(const Function&, const Call&) const;
    // The state that proves a region-dependent finding, if there is one: enabled, proven states
    // first.
    const Context* enabled_context(const Function&, const Call&) const;

    // The dtype of an operand, with parameters and results of calls resolved over the program: a
    // parameter has a dtype when every known caller passes the same one. A tensor whose dtype the
    // autocast region decides (result of a `lower` op) has DType::lowp or the region's dtype.
    ResolvedDType dtype_of(const Function&, const Operand&) const;

    std::span<const RegionLeak> leaks() const;

    // The instantiation and its place; empty for a plain function.
    std::vector<Note> instantiation_notes(const Function& f) const;

private:
    Program();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace mp::lint
