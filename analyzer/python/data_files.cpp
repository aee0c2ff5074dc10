#include "analyzer/python/data_files.hpp"

#include <algorithm>
#include <string>

#include "analyzer/python/constants.hpp"
#include "analyzer/python/yaml_reader.hpp"

namespace mp::lint::python {
namespace {

// Larger files, longer texts and deeper values are data to train on, not what configures a program.
constexpr std::size_t kLargestFile = std::size_t{256} << 10;
constexpr std::size_t kMostValues = 2000;
constexpr std::size_t kLongestText = 80;

class ValueReader : public JsonVisitor {
public:
    explicit ValueReader(const Source& source)
        : file_(source.path), lines_(line_starts(source.text)), package_(package_of(source.text)) {}

    void on_string(const JsonPath& path, std::string_view value, std::size_t begin, std::size_t) override {
        if (value.size() > kLongestText) return;
        if (is_default(path)) return add_default(path, value, begin);
        std::string quoted = "'";
        quoted.append(value) += '\'';
        add(path, Shape::object, Symbol(quoted), begin);
    }

    void on_scalar(const JsonPath& path, std::string_view value, std::size_t begin) override {
        if (value == "null") return add(path, Shape::object, Symbol("None"), begin);
        const std::optional<Number> number = number_of(value);
        add(path, Shape::scalar, Symbol(number ? number_text(number->value, number->whole) : value), begin);
    }

    // Refers to itself: what code reads there is the mapping, not a value.
    void on_object_end(const JsonPath& path) override {
        const Symbol name = name_of({path.begin(), path.end() - 1});
        if (name.empty()) return;
        Definition& mapping = definitions_.emplace_back();
        mapping.name = mapping.value.refers = name;
        mapping.value.shape = Shape::object;
    }

    std::vector<Definition> take() {
        if (!package_.empty()) defaults_.push_back(definition("@package", package_));
        if (!definitions_.empty())
            definitions_.insert(definitions_.begin(), defaults_.begin(), defaults_.end());
        const bool is_mapping = !definitions_.empty() && definitions_.back().name == file_;
        return is_mapping && definitions_.size() <= kMostValues ? std::move(definitions_)
                                                                : std::vector<Definition>{};
    }

private:
    // An item of the list `defaults` of Hydra, or of a list below it: `- base`, `- model: net`, `- model: [a, b]`.
    static bool is_default(const JsonPath& path) {
        const bool is_item = path.size() >= 2 && path[0] == "defaults" && path[1].empty();
        return is_item && (path.size() <= 3 || (path.size() == 4 && path[3].empty()));
    }

    void add_default(const JsonPath& path, std::string_view value, std::size_t begin) {
        std::string text = path.size() > 2 ? path[2] + "=" : "";
        Definition& d = defaults_.emplace_back(
            definition(".defaults." + std::to_string(defaults_.size()), text.append(value)));
        const Place place = place_of(lines_, begin);
        d.span = {file_, place.line, place.column, place.line, place.column};
    }

    Definition definition(std::string_view name, std::string_view text) const {
        Definition d;
        d.name = Symbol(std::string(file_.str()).append(name));
        d.value.shape = Shape::object;
        d.value.constant = Symbol(std::string("'").append(text) += '\'');
        return d;
    }

    // Empty for items of lists, and for keys that would make the name ambiguous.
    Symbol name_of(const JsonPath& path) const {
        std::string name(file_.str());
        for (const std::string& key : path) {
            if (key.empty() || key.find('.') != std::string::npos) return {};
            name.append(1, '.').append(key);
        }
        return Symbol(name);
    }

    void add(const JsonPath& path, Shape shape, Symbol constant, std::size_t begin) {
        const Symbol name = name_of(path);
        if (name.empty() || name == file_ || definitions_.size() > kMostValues) return;
        Definition& d = definitions_.emplace_back();
        const Place place = place_of(lines_, begin);
        d.span = {file_, place.line, place.column, place.line, place.column};
        d.name = name;
        d.value.shape = shape;
        d.value.constant = constant;
    }

    // "_global_" of `# @package _global_`, which Hydra reads from the comments at the top.
    static std::string_view package_of(std::string_view text) {
        constexpr std::string_view kMark = "@package ";
        while (text.starts_with('#')) {
            const std::string_view line = text.substr(0, text.find('\n'));
            if (const std::size_t at = line.find(kMark); at != line.npos) {
                const std::string_view name = line.substr(at + kMark.size());
                return name.substr(0, name.find_last_not_of(" \t\r") + 1);
            }
            text.remove_prefix(std::min(line.size() + 1, text.size()));
        }
        return {};
    }

    Symbol file_;
    std::vector<std::size_t> lines_;
    std::string_view package_;
    std::vector<Definition> defaults_;  // of Hydra
    std::vector<Definition> definitions_;
};

}  // namespace

void add_data_values(const Source& source, Function& file) {
    if (source.text.size() > kLargestFile) return;
    ValueReader values(source);
    const bool is_json = source.path.ends_with(".json");
    if (is_json ? read_json(source.text, values) : read_yaml(source.text, values)) return;
    file.definitions = values.take();
}

}  // namespace mp::lint::python
