// The objects that parsers make of dataclasses: HfArgumentParser((Model, Training)), tyro.cli(Config).

#include <algorithm>
#include <string_view>

#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/tables.hpp"
#include "analyzer/region/values.hpp"

namespace mp::lint {
namespace {

const Operand* first_or(const Call& call, std::string_view keyword) {
    if (!call.args.empty() && call.args[0].keyword.empty()) return &call.args[0];
    const auto at = std::ranges::find(call.args, keyword, [](const Operand& o) { return o.keyword.str(); });
    return at == call.args.end() ? nullptr : &*at;
}

}  // namespace

Values::Object Values::object_of_class(const Function& f, const Operand* named) {
    const Symbol type = named ? named_by(f, *named) : Symbol{};
    return {.type = names_.classes().knows(type) ? type : Symbol{}, .assumed = true};
}

// The object at this index of what the call gives.
Values::Object Values::parsed_item(const Function& f, const Call& call, std::size_t at, int depth) {
    if (depth > kDeepestValue) return {};
    if (const Function* callee = names_.function(call.callee)) {
        const Call* const made =
            callee->returned.size() == 1 ? call_of(*callee, callee->returned[0]) : nullptr;
        return made ? parsed_item(*callee, *made, at, depth + 1) : Object{};
    }
    if (!python::fills_classes(call) || call.args.empty()) return {};
    const Object parser = object_of(f, call.args[0], depth + 1);
    if (!parser.made || !parser.function || !python::is_parser_of_classes(parser.made->name.str())) return {};
    const Operand* const types = first_or(*parser.made, "dataclass_types");
    const Call* const display = types ? call_of(*parser.function, *types) : nullptr;
    if (display) return object_of_class(*parser.function, item_of_display(*display, at));
    return at == 0 ? object_of_class(*parser.function, types) : Object{};
}

Values::Object Values::object_parsed(const Function& f, const Call& call, int depth) {
    if (const Item item = item_of(call); item.held) {
        const Call* const held = call_of(f, *item.held);
        return held ? parsed_item(f, *held, item.at, depth) : Object{};
    }
    return python::fills_class(call.name.str()) ? object_of_class(f, first_or(call, "config_class"))
                                                : Object{};
}

}  // namespace mp::lint
