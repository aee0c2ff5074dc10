// What code reads from the YAML and JSON files that it loads by name.

#include <algorithm>
#include <charconv>
#include <string>

#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/region/calls.hpp"
#include "analyzer/region/python_regions.hpp"
#include "analyzer/region/tables.hpp"
#include "analyzer/region/values.hpp"

namespace mp::lint {

// The nearest file of this name, if the code names one.
Values::Object Values::data_file(std::string_view name, const Function& user) {
    return {.data = configurations_.file(name, user.span.file.str())};
}

// The path that an operand holds, or the path of the open file that it is. `given`: the call of `f` whose arguments
// its parameters hold.
Values::Path Values::path_of(const Function& f, const Operand& o, const Caller& given, int depth) {
    if (depth > kDeepestValue) return {};
    if (is_quoted(o.constant.str())) return {std::string(unquoted(o.constant.str())), &f, o.assumed};
    const Call* const call = call_of(f, o);
    if (call && python::joins_path(*call)) return path_joined(f, *call, given, depth);
    if (call && python::passes_path_on(*call)) return path_of(f, call->args[0], given, depth + 1);
    if (o.param != kNone && o.refers.empty() && given.call) {
        const Place place = argument_or_default(*given.function, *given.call, f, o.param);
        return place.operand ? path_of(*place.function, *place.operand, {}, depth + 1) : Path{};
    }
    if (!o.refers.empty())
        if (const Place place = place_of(f, o.refers);
            place.operand && call_of(*place.function, *place.operand))
            return path_of(*place.function, *place.operand, {}, depth + 1);
    const Known known = of(f, o);
    if (!is_quoted(known.constant.str())) return {};
    return {std::string(unquoted(known.constant.str())), &f, known.assumed};
}

// Whether the operand is a directory that the place of the code decides: HERE, after HERE = os.path.dirname(__file__).
bool Values::is_beside_code(const Function& f, const Operand& o) {
    if (python::names_own_file(o)) return true;
    if (!o.refers.empty()) {
        const Place place = place_of(f, o.refers);
        const Call* const made = place.operand ? call_of(*place.function, *place.operand) : nullptr;
        return made && std::ranges::any_of(made->args, python::names_own_file);
    }
    const Call* const call = call_of(f, o);
    return call && std::ranges::any_of(call->args, python::names_own_file);
}

Values::Path Values::path_joined(const Function& f, const Call& call, const Caller& given, int depth) {
    Path whole{.named_in = &f};
    for (const Operand& part : call.args) {
        const Path next = path_of(f, part, given, depth + 1);
        if (next.text.empty() && is_beside_code(f, part) && whole.text.empty()) continue;
        if (next.text.empty()) return {};
        whole.text += (whole.text.empty() ? "" : "/") + next.text;
        whole.assumed |= next.assumed;
    }
    return whole;
}

Values::Object Values::data_loaded(const Function& f, const Call& call, const Caller& given) {
    const Path path = path_of(f, call.args[0], given, 0);
    if (!path.named_in) return {};
    Object found = data_file(path.text, *path.named_in);
    if (found.data.empty()) found = data_file(path.text, f);
    found.assumed = path.assumed;
    return found;
}

// What a function loads from the file that its caller names.
Values::Object Values::data_returned(const Function& f, const Call& call, const Function& callee) {
    Object common;
    for (const Operand& o : callee.returned) {
        const Call* const made = call_of(callee, o);
        const Object found =
            made && python::loads_data(*made) ? data_loaded(callee, *made, {&f, &call}) : Object{};
        if (found.data.empty() || (!common.data.empty() && found.data != common.data)) return {};
        common = found;
    }
    return common;
}

Values::Object Values::data_made(const Function& f, const Call& call, int depth) {
    if (const Function* callee = names_.function(call.callee))
        return call.kind == CallKind::constructor ? Object{} : data_returned(f, call, *callee);
    if (python::loads_data(call)) return data_loaded(f, call, {});
    if (!python::wraps_data(call)) return {};
    Object found;
    for (const Operand& o : call.args) {
        Object data = object_of(f, o, depth + 1);
        if (data.data.empty()) continue;
        if (!found.data.empty()) return {};  // which of the two holds a key is not known
        data.assumed |= call.args.size() > 1;
        found = data;
    }
    return found;
}

// The first parameter of a function that Hydra calls.
Values::Object Values::data_of_hydra(const Function& f, std::int32_t param) {
    if (param != 0) return {};
    const std::string file = python::hydra_file(f);
    if (file.empty()) return {};
    const Object found = data_file(file, f);
    return found.data.empty() ? found : Object{.data = configurations_.composed(found.data)};
}

Values::Place Values::data_member(const Object& object, std::string_view key) {
    const Configurations::Value found = configurations_.member(object.data, key);
    if (!found.operand) return {};
    const bool is_stored = stored_keys_.contains(Symbol(std::string("'").append(key).append("'")));
    // A flag that is off can be switched on, like an option whose default is false.
    const bool is_off = found.operand->constant.str() == "false";
    return {found.function, found.operand, object.assumed || found.assumed || is_stored || is_off};
}

std::vector<Operand> Values::entries(const Function& f, const Operand& o) {
    if (!has_data_) return {};
    const Object mapping = object_of(f, o);
    if (mapping.data.empty()) return {};
    std::vector<Operand> out;
    for (const Symbol key : configurations_.keys(mapping.data)) {
        const Place place = data_member(mapping, key.str());
        if (!place.operand) continue;
        Operand& value = out.emplace_back(*place.operand);
        value.keyword = key;
        value.assumed |= place.assumed;
    }
    return out;
}

// The argument that `f(**data)` passes under this name.
Values::Place Values::unpacked(const Function& f, const Call& call, std::string_view name) {
    if (!has_data_) return {};
    for (const Operand& o : call.args) {
        if (o.keyword.str() != "**") continue;
        const Object data = object_of(f, o);
        if (data.data.empty()) continue;
        if (const Place place = data_member(data, name); place.operand) return place;
    }
    return {};
}

// The entry of a table or of a mapping under a constant key.
Values::Place Values::entry_of(const Object& table, const Known& key) {
    const std::string_view text = unquoted(key.constant.str());
    if (text.empty()) return {};
    if (!table.data.empty()) return data_member(table, text);
    if (!table.made || !is_display(*table.made)) return {};
    // `dtype` of dtype, device = choose(), which returns a tuple
    std::size_t at = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), at).ptr == text.data() + text.size())
        if (const Operand* item = item_of_display(*table.made, at))
            return {table.function, item, table.assumed};
    for (const Operand& entry : table.made->args) {
        if (entry.keyword.str().starts_with('*')) return {};
        if (entry.keyword.str() == text) return {table.function, &entry, table.assumed};
    }
    return {};
}

}  // namespace mp::lint
