#include "analyzer/region/program.hpp"

#include <future>

#include "analyzer/region/contexts.hpp"
#include "analyzer/region/dtypes.hpp"
#include "analyzer/region/leaks.hpp"
#include "analyzer/region/link_names.hpp"
#include "analyzer/region/namesakes.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {

// Built in this order; each part depends only on the ones before it.
struct Program::Impl {
    Impl(std::vector<Unit> all, const RegionConfig& regions)
        : units(std::move(all)),
          config(regions),
          graph(units),
          later(in_background([this] { return Rest{DTypes(graph), CallIndex(graph.functions())}; })),
          api(config),
          effects(graph, api),
          contexts(effects, config),
          leaks(Leaks(effects, contexts).take()),
          rest(later.get()) {}

    // Parts that regions do not depend on. They are built on another thread meanwhile.
    struct Rest {
        DTypes dtypes;
        CallIndex calls;
    };

    std::vector<Unit> units;
    RegionConfig config;
    Graph graph;
    std::future<Rest> later;
    AutocastApi api;
    Effects effects;
    Contexts contexts;
    std::vector<RegionLeak> leaks;
    Rest rest;
};

Program::Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program Program::link(std::vector<Unit> units, const RegionConfig& config, int threads) {
    Program program;
    link_names(units, threads);
    link_bindings(units);
    separate_namesakes(units);
    program.impl_ = std::make_unique<Impl>(std::move(units), config);
    return program;
}

std::span<const Unit> Program::units() const { return impl_->units; }

std::span<const Function* const> Program::functions() const { return impl_->graph.functions(); }

const CallIndex& Program::calls() const { return impl_->rest.calls; }

const Function* Program::definition(Symbol usr) const {
    const std::uint32_t f = impl_->graph.find(usr);
    return f == Graph::kNobody ? nullptr : &impl_->graph.function(f);
}

std::span<const Call* const> Program::callers(Symbol usr) const { return impl_->graph.calls_to(usr); }

const Function* Program::owner(const Call& call) const {
    const std::uint32_t f = impl_->graph.owner(call);
    return f == Graph::kNobody ? nullptr : &impl_->graph.function(f);
}

std::span<const Context> Program::contexts(const Function& f, const Call& call) const {
    const std::uint32_t index = impl_->graph.index_of(f);
    const auto at = static_cast<std::size_t>(&call - f.calls.data());
    return impl_->contexts.at(index, at);
}

const Context* Program::enabled_context(const Function& f, const Call& call) const {
    const auto all = contexts(f, call);  // the proven ones come first
    return all[0].enabled == Switch::on ? &all[0] : nullptr;
}

ResolvedDType Program::dtype_of(const Function& f, const Operand& operand) const {
    const std::uint32_t index = impl_->graph.index_of(f);
    if (index == Graph::kNobody) return {.dtype = operand.dtype, .chain = {}};
    return impl_->rest.dtypes.of(index, operand);
}

std::span<const RegionLeak> Program::leaks() const { return impl_->leaks; }

std::vector<Note> Program::instantiation_notes(const Function& f) const {
    if (!f.instantiated.known()) return {};
    return {{f.instantiated, std::string(f.display.str()) + " is instantiated here"}};
}

}  // namespace mp::lint
