#include "analyzer/region/outer_regions.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>

#include "analyzer/python/library/dotted.hpp"
#include "analyzer/region/by_symbol.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/classes.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {
namespace {

struct Precision {
    DType dtype = DType::unknown;  // unknown: fp32
    friend bool operator==(const Precision&, const Precision&) = default;
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
    return std::ranges::any_of(prefixes, [&](std::string_view p) { return text.starts_with(p); });
}

bool is_lightning(std::string_view name, std::string_view last) {
    return leaf(name) == last &&
           starts_with_any(name, {"pytorch_lightning.", "lightning.", "lightning_fabric."});
}

// The trainer's precision argument; nothing when it is not a known constant.
std::optional<Precision> precision_of(const Operand& o) {
    const std::string_view text = unquoted(o.constant.str());
    if (text == "16-mixed" || text == "16" || text == "fp16") return Precision{DType::fp16};
    if (text == "bf16-mixed" || text == "bf16") return Precision{DType::bf16};
    if (text == "no" || text.starts_with("32") || text.starts_with("64") || text.ends_with("-true") ||
        text == "fp32")
        return Precision{};
    return std::nullopt;
}

std::string_view directory_of(std::string_view path) { return path.substr(0, path.find_last_of('/') + 1); }

// The kind of region that a call of this name may open.
enum class Opens : std::uint8_t {
    not_asked,
    nothing,
    hmp,
    apex,
    lightning,
    hugging_face,
    prepared,
};

Opens opens_by_name(std::string_view name) {
    const std::string_view last = leaf(name);
    if (name == "hmp.convert" || name.ends_with(".hmp.convert")) return Opens::hmp;
    if (name == "apex.amp.initialize") return Opens::apex;
    if (is_lightning(name, "Trainer")) return Opens::lightning;
    if (name == "transformers.TrainingArguments" || name == "transformers.Seq2SeqTrainingArguments")
        return Opens::hugging_face;
    const bool prepares = last == "prepare" || last == "setup" || last == "setup_module";
    return prepares ? Opens::prepared : Opens::nothing;
}

// Calls `visit` for each folder above the path, the innermost first, each with its last slash.
template <typename Visit>
void for_each_folder(std::string_view path, Visit visit) {
    for (path = directory_of(path); !path.empty(); path = directory_of(path.substr(0, path.size() - 1)))
        visit(path);
}

// The program that begins in one file of a tree: what its functions run, and what it names without showing that it
// runs it (getattr(models, name)).
class ProgramOf {
public:
    ProgramOf(const Graph& graph, Symbol file) {
        std::vector<std::uint32_t> pending;
        for (std::uint32_t f = 0; f < graph.size(); ++f)
            if (graph.function(f).span.file == file) pending.push_back(f);
        std::unordered_set<std::uint32_t> seen(pending.begin(), pending.end());
        while (!pending.empty()) {
            const std::uint32_t f = pending.back();
            pending.pop_back();
            add(graph.function(f));
            for (const std::uint32_t call : graph.linked_calls(f))
                for (const Target& target : graph.targets(f, call))
                    if (seen.insert(target.function).second) pending.push_back(target.function);
        }
    }

    // Whether the function is in another program of the tree: below `root`, in folders of which this program neither
    // runs nor names anything.
    bool is_beside(const Function& f, std::string_view root) const {
        bool below = false, inside = false;
        std::string_view package = package_of(f);
        for_each_folder(f.span.file.str(), [&](std::string_view folder) {
            if (folder.size() <= root.size()) return;
            below = true;
            inside = inside || folders_.contains(folder) || named_.contains(package);
            package = python::home_of(package);
        });
        return below && !inside;
    }

private:
    // "models" for functions in models/resnet.py and models/__init__.py.
    static std::string_view package_of(const Function& f) {
        std::string_view path = f.span.file.str();
        const bool is_package = path.ends_with("/__init__.py");
        path = path.substr(0, path.rfind(is_package ? '/' : '.'));
        const std::string_view module = path.substr(directory_of(path).size());
        std::string_view name = f.usr.str();
        while (!name.empty() && leaf(name) != module) name = python::home_of(name);
        return is_package ? name : python::home_of(name);
    }

    void add(const Function& f) {
        for_each_folder(f.span.file.str(), [&](std::string_view folder) { folders_.insert(folder); });
        for (const TypeUse& use : f.types) add_name(use.name.str());
        for (const Call& call : f.calls) {
            add_name(call.name.str());
            for (const Operand& argument : call.args) {
                add_name(argument.refers.str());
                add_name(literal_in(argument.text.str()));
            }
        }
    }

    // "models" of import_module("models." + name) and of import_module(f"models.{name}").
    static std::string_view literal_in(std::string_view text) {
        const std::size_t open = text.find_first_of("\"'");
        if (open == text.npos) return {};
        text = text.substr(open + 1, text.find_first_of("\"'{", open + 1) - open - 1);
        return text.substr(0, text.find_last_not_of('.') + 1);
    }

    void add_name(std::string_view name) {
        for (; !name.empty(); name = python::home_of(name))
            if (!named_.insert(name).second) return;
    }

    std::unordered_set<std::string_view> folders_, named_;
};

class Finder {
public:
    explicit Finder(const Graph& graph) : graph_(graph) {}

    std::vector<OuterRegion> take() {
        for (std::uint32_t f = 0; f < graph_.size(); ++f) {
            const Function& function = graph_.function(f);
            if (is_python(function))
                for (const Call& call : function.calls) look_at(f, call);
        }
        add_trainers(trainers_, "LightningModule",
                     {"training_step", "validation_step", "test_step", "predict_step", "forward"});
        add_trainers(hugging_face_, "Trainer", {"compute_loss", "compute_loss_and_outputs"});
        return std::move(found_);
    }

private:
    struct Maker {
        const Call* call = nullptr;
        std::optional<Precision> precision;
        Device device = kUnknownDevice;
        bool assumed = false;  // the precision is a default that the command line can change
        bool trains = false;   // trainer.fit(model) in the same function
    };

    void look_at(std::uint32_t f, const Call& call) {
        switch (opens(call.name)) {
            case Opens::hmp:
                return add_process_wide(f, call, kHmp, DType::bf16);
            case Opens::apex: {
                const Operand* level = python_argument(call, "opt_level", 2, 0);
                if (!level || unquoted(level->constant.str()) == "O1")
                    add_process_wide(f, call, kApex, DType::fp16);
                return;
            }
            case Opens::lightning:
                if (call.kind != CallKind::constructor) return;
                trainers_.push_back(maker(call, "precision"));
                trainers_.back().trains = is_fitted(graph_.function(f), call);
                return;
            case Opens::hugging_face:
                return hugging_face_.push_back(arguments(call));
            case Opens::prepared:
                return look_at_prepared(f, call);
            case Opens::not_asked:
            case Opens::nothing:
                return;
        }
    }

    // Memoised per name, because it is called for every call.
    Opens opens(Symbol name) {
        Opens& known = opens_[name];
        if (known == Opens::not_asked) known = opens_by_name(name.str());
        return known;
    }

    static bool is_fitted(const Function& f, const Call& trainer) {
        return std::ranges::any_of(f.calls, [&](const Call& call) {
            return leaf(call.name.str()) == "fit" && !call.args.empty() &&
                   call_of(f, call.args[0]) == &trainer;
        });
    }

    static Maker maker(const Call& call, std::string_view keyword) {
        Maker made{.call = &call, .precision = Precision{}};
        if (const Operand* value = python_argument(call, keyword, -1, 0)) {
            made.precision = precision_of(*value);
            made.assumed = value->assumed;
        }
        if (const Operand* value = python_argument(call, "accelerator", -1, 0)) {
            const std::string_view device = unquoted(value->constant.str());
            made.device = device == "tpu" ? device_named("xla") : device_named(device);
        }
        return made;
    }

    static Maker arguments(const Call& call) {
        Maker made{.call = &call, .precision = Precision{}};
        for (const auto& [keyword, dtype] :
             {std::pair("fp16", DType::fp16), std::pair("bf16", DType::bf16)}) {
            const Operand* value = python_argument(call, keyword, -1, 0);
            if (!value || value->constant.str() == "false") continue;
            if (value->constant.str() != "true") made.precision = std::nullopt;
            made.assumed |= value->assumed;
            if (made.precision) made.precision = Precision{dtype};
        }
        return made;
    }

    // hmp.convert() and amp.initialize() change the precision of everything in the same program:
    // the files in the same folder and below, and the functions they call. A tree may hold many
    // programs, also below each other.
    void add_process_wide(std::uint32_t from, const Call& call, Device device, DType dtype) {
        const Function& opener = graph_.function(from);
        const std::string_view directory = directory_of(opener.span.file.str());
        const ProgramOf program(graph_, opener.span.file);
        Symbol condition;
        for (const Block& block : opener.flow)
            for (const Edge& e : block.to)
                if (e.to == call.block && e.when) condition = e.condition;
        for (std::uint32_t f = 0; f < graph_.size(); ++f) {
            const Function& function = graph_.function(f);
            if (!is_python(function) || !graph_.callers(f).empty()) continue;
            if (!function.span.file.str().starts_with(directory) || loads_data(function)) continue;
            if (program.is_beside(function, directory)) continue;
            found_.push_back({.function = f,
                              .device = device,
                              .dtype = dtype,
                              .proven = call.block == 0,
                              .process_wide = true,
                              .condition = condition,
                              .opener = call.name,
                              .opened = call.span});
        }
    }

    // A data set: its tensors are on the CPU, and neither apex nor HMP casts those.
    bool loads_data(const Function& function) {
        if (function.parent_class.empty() || function.bases.empty()) return false;
        return starts_with_any(classes().library_base(function.parent_class).str(),
                               {"torch.utils.data.", "torchvision.datasets."});
    }

    // The class of an object that was made in this function.
    Symbol class_of(std::uint32_t f, const Operand& o) {
        const auto& calls = graph_.function(f).calls;
        if (o.call < 0 || static_cast<std::size_t>(o.call) >= calls.size()) return {};
        const Call& made = calls[static_cast<std::size_t>(o.call)];
        return made.kind == CallKind::constructor && classes().knows(made.name) ? made.name : Symbol{};
    }

    const Call* made_by(std::uint32_t f, const Operand& o) const {
        const auto& calls = graph_.function(f).calls;
        if (o.call < 0 || static_cast<std::size_t>(o.call) >= calls.size()) return nullptr;
        return &calls[static_cast<std::size_t>(o.call)];
    }

    // accelerator.prepare(model), fabric.setup(model): the model's forward runs in the region.
    void look_at_prepared(std::uint32_t f, const Call& call) {
        if (call.args.empty()) return;
        const Call* made = made_by(f, call.args[0]);
        if (!made) return;
        const std::string_view name = made->name.str();
        const bool accelerate = name == "accelerate.Accelerator";
        if (!accelerate && !is_lightning(name, "Fabric")) return;
        const Maker from = maker(*made, accelerate ? "mixed_precision" : "precision");
        if (!from.precision || from.precision->dtype == DType::unknown) return;
        for (std::size_t i = 1; i < call.args.size(); ++i)
            add_method(class_of(f, call.args[i]), "forward", from, true);
    }

    void add_method(Symbol in_class, std::string_view method, const Maker& from, bool only) {
        if (in_class.empty()) return;
        const Function* body = classes().method(in_class, method);
        if (!body) return;
        found_.push_back({.function = graph_.index_of(*body),
                          .device = from.device,
                          .dtype = from.precision->dtype,
                          .proven = only && !from.assumed,
                          .always = only,
                          .opener = from.call->name,
                          .opened = from.call->span});
    }

    // If all trainers that train agree, every module of the program trains in their region. If they do not, it is
    // unknown which module belongs to which trainer. What others only evaluate may run elsewhere too.
    void add_trainers(const std::vector<Maker>& makers, std::string_view base,
                      std::initializer_list<std::string_view> methods) {
        const auto training = std::ranges::find_if(makers, &Maker::trains);
        if (makers.empty()) return;
        const Maker& first = training == makers.end() ? makers.front() : *training;
        bool all_agree = true;
        for (const Maker& m : makers) {
            const bool agrees = m.precision && m.precision == first.precision;
            if (!agrees && m.trains == first.trains) return;
            all_agree = all_agree && agrees;
        }
        if (!first.precision || first.precision->dtype == DType::unknown) return;
        for (const Symbol name : classes().all()) {
            if (classes().library_base(name, base).empty()) continue;
            for (const std::string_view method : methods)
                for (const Function* f : classes().methods(name))
                    if (leaf(f->name.str()) == method)
                        add_method(name, method, first, all_agree || method == "training_step");
        }
    }

    // Built on demand: most programs do not need it.
    const Classes& classes() {
        if (!classes_) classes_.emplace(graph_.functions());
        return *classes_;
    }

    const Graph& graph_;
    std::optional<Classes> classes_;
    BySymbol<Opens> opens_;
    std::vector<Maker> trainers_;
    std::vector<Maker> hugging_face_;
    std::vector<OuterRegion> found_;
};

}  // namespace

std::vector<OuterRegion> find_outer_regions(const Graph& graph) { return Finder(graph).take(); }

}  // namespace mp::lint
