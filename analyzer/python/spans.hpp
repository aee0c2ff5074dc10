#pragma once

#include "analyzer/facts/model.hpp"

namespace mp::lint::python {

// Calls `visit(SourceSpan&)` for every span of a unit that a Python front end writes.
template <typename Visit>
void for_each_span(Unit& unit, Visit visit) {
    const auto operands = [&](auto& list) {
        for (Operand& operand : list) visit(operand.span);
    };
    for (Function& f : unit.functions) {
        visit(f.span);
        for (Call& call : f.calls) {
            visit(call.span);
            operands(call.args);
            visit(call.result.span);
        }
        for (Cast& cast : f.casts) {
            visit(cast.span);
            visit(cast.source.span);
        }
        for (Accumulation& sum : f.accumulations) {
            visit(sum.span);
            visit(sum.declared);
            visit(sum.through_span);
        }
        for (Update& update : f.updates) visit(update.span);
        for (Scaling& scaling : f.scalings) visit(scaling.span);
        for (TypeUse& use : f.types) visit(use.span);
        for (Setting& setting : f.settings) {
            visit(setting.span);
            visit(setting.value.span);
        }
        for (Definition& definition : f.definitions) {
            visit(definition.span);
            visit(definition.value.span);
        }
        for (Block& block : f.flow) visit(block.span);
        operands(f.returned);
    }
}

}  // namespace mp::lint::python
