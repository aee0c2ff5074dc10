#include "analyzer/region/bindings.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analyzer/region/calls.hpp"
#include "analyzer/region/python_regions.hpp"

namespace mp::lint {
namespace {

std::optional<std::string_view> after(std::string_view text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return std::nullopt;
    return text.substr(prefix.size());
}

// Namespace and dispatch key of TORCH_LIBRARY(ns, m), _FRAGMENT and _IMPL(ns, key, m), read from
// the name of the function that the macro defines: "TORCH_LIBRARY_IMPL_init_ns_CUDA_12" in
// libtorch, "mp_library_CUDA_ns" in our stubs.
struct Library {
    std::string_view space;
    std::string_view key;
};
std::optional<Library> library_of(std::string_view name) {
    if (const auto impl = after(name, "TORCH_LIBRARY_IMPL_init_")) {
        const std::string_view with_key = impl->substr(0, impl->rfind('_'));
        const std::size_t at = with_key.rfind('_');
        if (at == std::string_view::npos) return std::nullopt;
        return Library{with_key.substr(0, at), with_key.substr(at + 1)};
    }
    if (const auto fragment = after(name, "TORCH_LIBRARY_FRAGMENT_init_"))
        return Library{fragment->substr(0, fragment->rfind('_')), {}};
    if (const auto library = after(name, "TORCH_LIBRARY_init_")) return Library{*library, {}};
    const auto stub = after(name, "mp_library_");
    const std::size_t at = stub ? stub->find('_') : std::string_view::npos;
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view tag = stub->substr(0, at);
    return Library{stub->substr(at + 1), tag == "lib" || tag == "fragment" ? "" : tag};
}

// The module of "pybind11_init_NAME"; empty when the name is a macro that the build system defines, or when it is a
// helper that registers functions in a module.
std::string_view module_exported_by(std::string_view name) {
    const auto module = after(name, "pybind11_init_");
    if (!module || *module == "mp_extension" || *module == "TORCH_EXTENSION_NAME") return {};
    return *module;
}

// The literal that names what is exported: "exp" of "myops::exp.out(Tensor x) -> Tensor".
std::string_view exported_name(const Operand& o) {
    std::string_view text = unquoted(o.constant.empty() ? o.text.str() : o.constant.str());
    if (const std::size_t scope = text.find("::"); scope < text.find('(')) text.remove_prefix(scope + 2);
    return text.substr(0, text.find_first_of("(. "));
}

bool is_within_module(std::string_view name) { return name.starts_with("pybind11::") && leaf(name) == "def"; }

bool is_within_library(std::string_view name) {
    return name == "torch::Library::def" || name == "torch::Library::impl";
}

class Bindings {
public:
    explicit Bindings(std::vector<Unit>& units) {
        for (Unit& unit : units) {
            if (unit.language == Language::python) continue;
            for (Function& f : unit.functions) read(unit, f);
        }
    }
    bool empty() const { return exports_.empty(); }

    void connect(const Unit& unit, const Function& f, Call& call) const {
        const std::string_view name = call.name.str();
        if (const auto op = after(name, "torch.ops.")) return connect_op(*op, call);
        const std::string_view own = leaf(name);
        if (own.size() == name.size() || !exported_.contains(own)) return;
        std::string_view module = name.substr(0, name.size() - own.size() - 1);
        const bool is_loaded = module == "?";
        if (is_loaded) {
            module = loaded_by(unit, f, call);
            if (module.empty()) return;
        } else if (module == "torch" || module.starts_with("torch.")) {
            return;
        }
        Symbol target = find(std::string(leaf(module)) + "." + std::string(own));
        if (target.empty() && (is_loaded || call.kind == CallKind::function))
            target = find("." + std::string(own));
        if (!target.empty()) call.callee = target;
    }

private:
    void read(const Unit& unit, Function& f) {
        const std::string_view name = leaf(f.name.str());
        const auto library = library_of(name);
        const std::string_view module = module_exported_by(name);
        for (Call& c : f.calls) {
            if (c.args.size() < 2 || c.lambdas.empty()) continue;
            const Symbol usr = c.lambdas.front();
            const std::string_view exported = exported_name(c.args[1]);
            const std::string own = "." + std::string(exported);
            if (library && library->key != "Meta" && is_within_library(c.name.str())) {
                add("torch.ops." + std::string(library->space) + own, usr, library->key);
            } else if (is_within_module(c.name.str())) {
                add(std::string(module) + own, usr, {});
                // Builds often call a module what its file is called: roi_align_cuda.cpp.
                if (module.empty()) add(stem(unit.path.str()) + own, usr, {});
            } else {
                continue;
            }
            c.lambdas.clear();  // registering a function does not call it
        }
    }

    static std::string stem(std::string_view path) { return std::filesystem::path(path).stem().string(); }

    void add(const std::string& name, Symbol usr, std::string_view key) {
        exported_.insert(Symbol(leaf(name)).str());
        const auto [entry, is_new] = exports_.try_emplace(name, Export{usr, key == "CUDA"});
        // If an op has several kernels, the CUDA kernel is used, because regions are mostly for
        // CUDA.
        if (!is_new && key == "CUDA" && !entry->second.cuda)
            entry->second = {usr, true};
        else if (!is_new && !name.starts_with("torch.ops.") && entry->second.usr != usr)
            entry->second.usr = {};  // two modules of a name, or without one, export it
    }

    Symbol find(const std::string& name) const {
        const auto found = exports_.find(name);
        return found == exports_.end() ? Symbol{} : found->second.usr;
    }

    // torch.ops.ns.name(...), or one overload of it.
    void connect_op(std::string_view op, Call& call) const {
        const std::size_t dot = op.find('.');
        if (dot == std::string_view::npos) return;
        op = op.substr(0, op.find('.', dot + 1));
        if (const Symbol target = find("torch.ops." + std::string(op)); !target.empty()) call.callee = target;
    }

    // ext = torch.utils.cpp_extension.load(name="ext", ...); ext.f(x)
    static std::string_view loaded_by(const Unit& unit, const Function& f, const Call& call) {
        if (call.args.empty()) return {};
        const Operand& module = call.args[0];
        return module.call >= 0 ? loaded_in(f, module) : loaded_in_file(unit, module.name.str());
    }

    // The functions of a file use what its statements load.
    static std::string_view loaded_in_file(const Unit& unit, std::string_view name) {
        for (const Function& f : unit.functions)
            for (const Definition& d : f.definitions)
                if (!name.empty() && leaf(d.name.str()) == name) return loaded_in(f, d.value);
        return {};
    }

    static std::string_view loaded_in(const Function& f, const Operand& module) {
        if (module.call < 0 || static_cast<std::size_t>(module.call) >= f.calls.size()) return {};
        const Call& made = f.calls[static_cast<std::size_t>(module.call)];
        if (!made.name.str().starts_with("torch.utils.cpp_extension.load")) return {};
        const Operand* name = python_argument(made, "name", 0, 0);
        return name ? unquoted(name->constant.str()) : std::string_view{};
    }

    struct Export {
        Symbol usr;
        bool cuda = false;
    };
    std::unordered_set<std::string_view> exported_;    // names without their modules: most calls have another
    std::unordered_map<std::string, Export> exports_;  // key: "ext.f", or ".f" for a module without a known
                                                       // name
};

}  // namespace

std::optional<RegisteredOp> registered_op(const Function& f, const Call& call) {
    if (!is_within_library(call.name.str()) || call.args.size() < 2) return std::nullopt;
    const auto library = library_of(leaf(f.name.str()));
    if (!library) return std::nullopt;
    return RegisteredOp{library->space, library->key, exported_name(call.args[1])};
}

void link_bindings(std::vector<Unit>& units) {
    const bool python =
        std::ranges::any_of(units, [](const Unit& u) { return u.language == Language::python; });
    if (!python) return;
    const Bindings bindings(units);
    if (bindings.empty()) return;
    std::unordered_map<Symbol, bool> defined;
    for (const Unit& unit : units)
        for (const Function& f : unit.functions) defined.emplace(f.usr, true);
    for (Unit& unit : units) {
        if (unit.language != Language::python) continue;
        for (Function& f : unit.functions)
            for (Call& call : f.calls)
                if (call.callee.empty() || !defined.contains(call.callee)) bindings.connect(unit, f, call);
    }
}

}  // namespace mp::lint
