#include "analyzer/python/library/data_calls.hpp"

#include <array>

#include "analyzer/python/library/dotted.hpp"

namespace mp::lint::python {
namespace {

// The text of a keyword of a decorator: "conf" of `hydra.main(config_path='conf', ...)`.
std::string keyword_text(std::string_view call, std::string_view keyword) {
    const std::size_t at = call.find(std::string(keyword).append("="));
    if (at == std::string_view::npos) return {};
    const std::string_view value = call.substr(at + keyword.size() + 1);
    if (value.empty() || (value[0] != '\'' && value[0] != '"')) return {};
    return std::string(value.substr(1, value.find(value[0], 1) - 1));
}

}  // namespace

bool loads_data(const Call& call) {
    if (call.args.empty()) return false;
    const std::string_view name = call.name.str(), method = last_part(name);
    constexpr std::array<std::string_view, 4> kYaml{"load", "safe_load", "full_load", "unsafe_load"};
    if (name.starts_with("yaml.")) return is_one_of(method, kYaml);
    return name == "json.load" || name == "json.loads" || name.ends_with("OmegaConf.load");
}

bool wraps_data(const Call& call) {
    constexpr std::array<std::string_view, 15> kNames{
        "create",     "to_container",    "to_object", "structured", "DictConfig",
        "EasyDict",   "AttrDict",        "Box",       "munchify",   "DotMap",
        "ConfigDict", "SimpleNamespace", "Namespace", "dict",       "deepcopy"};
    return !call.args.empty() && is_one_of(last_part(call.name.str()), kNames);
}

bool passes_path_on(const Call& call) {
    constexpr std::array<std::string_view, 16> kNames{
        "open",      "__enter__",  "Path",     "PosixPath",       "str",      "fspath",
        "abspath",   "realpath",   "normpath", "resolve",         "absolute", "read",
        "read_text", "expanduser", "as_posix", "to_absolute_path"};
    return !call.args.empty() && is_one_of(last_part(call.name.str()), kNames);
}

bool joins_path(const Call& call) {
    const std::string_view name = last_part(call.name.str());
    return call.args.size() >= 2 &&
           (name == "join" || name == "joinpath" || name == "Path" || name == "__truediv__");
}

bool names_own_file(const Operand& o) { return o.text.str().find("__file__") != std::string_view::npos; }

std::string hydra_file(const Function& f) {
    for (const Symbol annotation : f.annotations) {
        const std::string_view text = annotation.str();
        if (!text.starts_with("hydra.main(")) continue;
        std::string file = keyword_text(text, "config_name");
        const std::string folder = keyword_text(text, "config_path");
        if (file.empty()) return {};
        if (!file.ends_with(".yaml") && !file.ends_with(".yml")) file += ".yaml";
        return folder.empty() ? file : folder + "/" + file;
    }
    return {};
}

}  // namespace mp::lint::python
