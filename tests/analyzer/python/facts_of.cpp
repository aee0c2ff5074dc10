#include "tests/analyzer/python/facts_of.hpp"

#include <sstream>

#include "analyzer/facts/text.hpp"

namespace mp::lint::python {
namespace {

const Function* find(const Unit& unit, std::string_view name) {
    for (const Function& f : unit.functions)
        if (f.name.str() == "m." + std::string(name)) return &f;
    return nullptr;
}

// Cuts ` key=value` out of a line, with the quotes of the value.
void drop(std::string& line, std::string_view key) {
    for (std::size_t at = line.find(key); at != std::string::npos; at = line.find(key, at)) {
        std::size_t end = at + key.size();
        if (end < line.size() && line[end] == '"') {
            for (++end; end < line.size() && line[end] != '"'; ++end)
                if (line[end] == '\\') ++end;
            ++end;
        } else {
            end = line.find_first_of(" }]", end);
        }
        line.erase(at, (end == std::string::npos ? line.size() : end) - at);
    }
}

// `call 3:1-9 name` to `call name`.
void drop_position(std::string& line) {
    const std::size_t word = line.find(' ');
    if (word == std::string::npos || word + 1 >= line.size()) return;
    const unsigned char next = static_cast<unsigned char>(line[word + 1]);
    if (std::isdigit(next) == 0) return;
    const std::size_t end = line.find(' ', word + 1);
    line.erase(word, (end == std::string::npos ? line.size() : end) - word);
}

std::string show(const Operand& o) {
    std::string text = o.keyword.empty() ? "" : std::string(o.keyword.str()) + "=";
    if (!o.constant.empty())
        text += o.constant.str();
    else if (o.call != kNone)
        text += "#" + std::to_string(o.call);
    else
        text += o.name.empty() ? o.text.str() : o.name.str();
    if (o.shape == Shape::tensor || o.shape == Shape::module) {
        text += o.shape == Shape::tensor ? ":tensor" : ":module";
        if (o.dtype != DType::unknown) text += " " + std::string(name_of(o.dtype));
    }
    return text;
}

}  // namespace

Unit unit_of(std::string_view source) { return extract({"m.py", "m", source}); }

std::vector<std::string> facts_of(std::string_view source, std::string_view function) {
    Unit unit = unit_of(source);
    const Function* f = find(unit, function);
    if (!f) return {"no function " + std::string(function)};
    Unit one;
    one.functions = {*f};
    std::istringstream text(print_facts(one));
    std::vector<std::string> lines;
    bool inside = false;
    for (std::string line; std::getline(text, line);) {
        line.erase(0, line.find_first_not_of(' '));
        if (inside) {
            drop_position(line);
            for (const std::string_view key :
                 {" span=", " text=", " refers=", " value.span=", " value.text="})
                drop(line, key);
            if (!line.starts_with("define ")) lines.push_back(line);
        }
        inside |= line.starts_with("func ");
    }
    return lines;
}

std::vector<std::string> calls_of(std::string_view source, std::string_view function) {
    const Unit unit = unit_of(source);
    const Function* f = find(unit, function);
    if (!f) return {"no function " + std::string(function)};
    std::vector<std::string> lines;
    for (const Call& call : f->calls) {
        std::string line(call.name.str());
        line += '(';
        for (const Operand& argument : call.args) {
            if (line.back() != '(') line += ", ";
            line += show(argument);
        }
        lines.push_back(line + ')');
    }
    return lines;
}

std::vector<std::string> functions_of(std::string_view source) {
    std::vector<std::string> names;
    for (const Function& f : unit_of(source).functions) names.emplace_back(f.name.str());
    return names;
}

}  // namespace mp::lint::python
