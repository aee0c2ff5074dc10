#include "analyzer/python/config_files.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>

#include "analyzer/python/data_files.hpp"
#include "analyzer/python/json_reader.hpp"
#include "analyzer/python/library/data_calls.hpp"
#include "analyzer/python/library/dotted.hpp"
#include "kernels/base/paths.hpp"
#include "kernels/numerics/op.hpp"

namespace mp::lint::python {
namespace {

bool mentions_any(std::string_view text, std::span<const std::string_view> parts) {
    return std::ranges::any_of(
        parts, [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
}

Unit empty_unit(const Source& source) {
    Unit unit;
    unit.path = Symbol(source.path);
    unit.language = Language::python;
    return unit;
}

Function file_function(const Source& source) {
    Function f;
    f.usr = Symbol(source.path + ":<file>");
    f.name = f.display = Symbol("<file>");
    f.kind = FunctionKind::python;
    f.span = {Symbol(source.path), 1, 1, 1, 1};
    return f;
}

Operand constant(Symbol text, Shape shape) {
    Operand value;
    value.shape = shape;
    value.constant = text;
    return value;
}

// Top-level keys that only configurations of these systems have.
constexpr std::array<std::string_view, 14> kMarks{
    "amp",
    "autocast_bf16_ops",
    "autocast_fp32_ops",
    "bf16",
    "bfloat16",
    "communication_data_type",
    "fp16",
    "hmp_bf16_ops",
    "hmp_fp32_ops",
    "torch_autocast",
    "train_micro_batch_size_per_gpu",
    "use_habana_mixed_precision",
    "use_torch_autocast",
    "zero_optimization",
};

// "fp16.enabled" for {fp16: {enabled: ..}}. Elements of an op list get the key of the list.
std::string key_of(const JsonPath& path) {
    std::string key;
    for (const std::string& part : path) {
        if (part.empty()) continue;
        if (!key.empty()) key += '.';
        key += part;
    }
    if (key == "autocast_bf16_ops" || key == "hmp_bf16_ops") return "bf16_ops";
    if (key == "autocast_fp32_ops" || key == "hmp_fp32_ops") return "fp32_ops";
    return key;
}

// Limits: deeper values and longer lists are data, not configuration.
constexpr std::size_t kDeepest = 6;
constexpr std::size_t kMostSettings = 2000;

class SettingsReader : public JsonVisitor {
public:
    SettingsReader(const Source& source, Function& function)
        : text_(source.text), file_(source.path), lines_(line_starts(source.text)), function_(function) {}

    void on_string(const JsonPath& path, std::string_view value, std::size_t begin,
                   std::size_t end) override {
        note_mark(path);
        std::string quoted = "'";
        quoted.append(value) += '\'';
        add(path, constant(Symbol(quoted), Shape::object), begin - 1, end + 1);
    }

    void on_scalar(const JsonPath& path, std::string_view value, std::size_t begin) override {
        note_mark(path);
        const bool is_null = value == "null";
        add(path, constant(is_null ? Symbol("None") : Symbol(value), is_null ? Shape::object : Shape::scalar),
            begin, begin + value.size());
    }

    void on_object_end(const JsonPath& path) override { note_mark(path); }

    bool is_configuration() const { return marked_; }

private:
    void note_mark(const JsonPath& path) {
        marked_ = marked_ || (!path.empty() && is_one_of(path[0], kMarks));
    }

    void add(const JsonPath& path, Operand value, std::size_t begin, std::size_t end) {
        if (path.empty() || path.size() > kDeepest || function_.settings.size() >= kMostSettings) return;
        const Place first = place_of(lines_, begin), last = place_of(lines_, end);
        value.text = Symbol(text_.substr(begin, std::min<std::size_t>(end - begin, 80)));
        value.span = {file_, first.line, first.column, last.line, last.column};
        function_.settings.push_back({.span = value.span, .key = Symbol(key_of(path)), .value = value});
    }

    std::string_view text_;
    Symbol file_;
    std::vector<std::size_t> lines_;
    Function& function_;
    bool marked_ = false;
};

void add_settings(const Source& source, Function& f) {
    SettingsReader reader(source, f);
    const bool broken = read_json(source.text, reader).has_value();
    if (broken || !reader.is_configuration()) f.settings.clear();
}

Unit extract_data(const Source& source) {
    Unit unit = empty_unit(source);
    Function f = file_function(source);
    if (source.path.ends_with(".json")) add_settings(source, f);
    add_data_values(source, f);
    if (!f.settings.empty() || !f.definitions.empty()) unit.functions.push_back(std::move(f));
    return unit;
}

// Habana names its lists by dtype: ops_bf16.txt, ops_fp32.txt.
std::string_view list_key(std::string_view path) {
    const std::string_view name = file_name(path);
    constexpr std::array<std::string_view, 4> kLower{"bf16", "bfloat16", "lower", "BF16"};
    constexpr std::array<std::string_view, 3> kFp32{"fp32", "float32", "FP32"};
    if (mentions_any(name, kLower)) return "bf16_ops";
    return mentions_any(name, kFp32) ? "fp32_ops" : "ops";
}

std::string_view trimmed(std::string_view line) {
    line = line.substr(0, line.find('#'));
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return line.substr(first, line.find_last_not_of(" \t\r") + 1 - first);
}

bool is_word(std::string_view text) {
    return std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.';
    });
}

// An op list has one word per line, and most of the words are ops.
Unit extract_op_list(const Source& source) {
    Unit unit = empty_unit(source);
    Function f = file_function(source);
    const Symbol file(source.path), key(list_key(source.path));
    std::size_t known = 0;
    std::string_view rest = source.text;
    for (std::uint32_t number = 1; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        const std::string_view word = trimmed(line);
        if (word.empty()) continue;
        if (!is_word(word) || f.settings.size() >= kMostSettings) return unit;
        known += op_from_name(word).known() ? 1 : 0;
        const auto column = static_cast<std::uint32_t>(word.data() - line.data() + 1);
        const SourceSpan span{file, number, column, number, column + static_cast<std::uint32_t>(word.size())};
        Operand value = constant(Symbol("'" + std::string(word) + "'"), Shape::object);
        value.text = Symbol(word);
        value.span = span;
        f.settings.push_back({.span = span, .key = key, .value = value});
    }
    if (known * 2 > f.settings.size()) unit.functions.push_back(std::move(f));
    return unit;
}

bool is_yaml(std::string_view path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

// "'ds_config.json'" -> ds_config.json; empty when the constant does not name such a file.
std::string_view file_named(Symbol constant) {
    std::string_view text = constant.str();
    if (text.size() < 7 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return {};
    text = text.substr(1, text.size() - 2);
    return text.ends_with(".json") || text.ends_with(".txt") || is_yaml(text) ? text : std::string_view();
}

// A JSON or text file is read only if its name has one of these, because most such files are data. Every YAML file is
// read: people write those.
constexpr std::array<std::string_view, 15> kHints{"config",   "Config",    "ds_",   "deepspeed", "DeepSpeed",
                                                  "gaudi",    "precision", "bf16",  "fp32",      "hmp",
                                                  "OPS_LIST", "cfg",       "param", "setting",   "SETTING"};

class FileNames {
public:
    // `loads_data`: the code loads some JSON or YAML file, so each that it names can be the one.
    explicit FileNames(bool loads_data) : loads_data_(loads_data) {}

    void note(const Operand& operand, std::string_view context) {
        note(operand.constant, {context, operand.keyword.str()});
    }

    void note(Symbol constant, std::initializer_list<std::string_view> contexts) {
        const std::string_view file = file_named(constant);
        if (file.empty()) return;
        const bool hinted =
            is_yaml(file) || (loads_data_ && file.ends_with(".json")) || mentions_any(file, kHints) ||
            std::ranges::any_of(contexts, [](std::string_view c) { return mentions_any(c, kHints); });
        if (hinted && seen_.insert(file).second) names_.emplace_back(file);
    }

    std::vector<std::string> take() { return std::move(names_); }

private:
    bool loads_data_;
    std::unordered_set<std::string_view> seen_;
    std::vector<std::string> names_;
};

// The file that an item of `defaults` names.
void note_default(Symbol item, FileNames& names) {
    const std::string_view text = item.str();
    const std::optional<HydraDefault> read = hydra_default(text.substr(1, text.size() - 2));
    if (read && !read->is_self) names.note(Symbol("'" + read->file + "'"), {});
}

}  // namespace

bool is_configuration_name(std::string_view path) {
    return path.ends_with(".json") || path.ends_with(".txt") || is_yaml(path);
}

Unit extract_config(const Source& source) {
    return source.path.ends_with(".txt") ? extract_op_list(source) : extract_data(source);
}

std::vector<std::string> configuration_files(const Unit& unit) {
    FileNames names(std::ranges::any_of(
        unit.functions, [](const Function& f) { return std::ranges::any_of(f.calls, loads_data); }));
    for (const Function& f : unit.functions) {
        for (const Call& call : f.calls)
            for (const Operand& argument : call.args) names.note(argument, call.name.str());
        for (const Setting& setting : f.settings) names.note(setting.value, setting.key.str());
        for (const Definition& d : f.definitions) {
            if (!is_configuration_name(unit.path.str()))
                names.note(d.value, d.name.str());
            else if (names_hydra_default(d.name.str()))
                note_default(d.value.constant, names);
        }
        for (const Parameter& p : f.params) names.note(p.constant, {f.name.str(), p.name.str()});
        if (const std::string file = hydra_file(f); !file.empty()) names.note(Symbol("'" + file + "'"), {});
    }
    return names.take();
}

}  // namespace mp::lint::python
