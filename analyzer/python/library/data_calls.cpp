#include "analyzer/python/library/data_calls.hpp"

#include <algorithm>
#include <array>
#include <utility>

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

bool is_parser_of_classes(std::string_view name) {
    constexpr std::array<std::string_view, 3> kParsers{"HfArgumentParser", "TrlParser", "H4ArgumentParser"};
    return is_one_of(last_part(name), kParsers);
}

bool fills_classes(const Call& call) {
    constexpr std::array<std::string_view, 5> kMethods{"parse_args_into_dataclasses", "parse_args_and_config",
                                                       "parse_yaml_file", "parse_json_file", "parse_dict"};
    return call.kind == CallKind::method && is_one_of(last_part(call.name.str()), kMethods);
}

bool fills_class(std::string_view name) {
    constexpr std::array<std::string_view, 6> kFunctions{
        "tyro.cli",       "dcargs.cli",           "draccus.parse",
        "pyrallis.parse", "simple_parsing.parse", "omegaconf.OmegaConf.structured"};
    return is_one_of(name, kFunctions);
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

std::optional<HydraDefault> hydra_default(std::string_view item) {
    if (item == "_self_") return HydraDefault{.is_self = true};
    if (item.find("${") != std::string_view::npos) return std::nullopt;
    for (const std::string_view mark : {"override ", "optional "})
        if (item.starts_with(mark)) item.remove_prefix(mark.size());
    const std::size_t equals = item.find('=');
    std::string_view group = equals == std::string_view::npos ? "" : item.substr(0, equals);
    const std::string_view option = equals == std::string_view::npos ? item : item.substr(equals + 1);
    const std::size_t at = group.find('@');
    std::string package(at == std::string_view::npos ? "" : group.substr(at + 1));
    group = group.substr(0, at);
    if (group.starts_with('/')) group.remove_prefix(1);
    if (at == std::string_view::npos) {
        package = group;
        std::ranges::replace(package, '/', '.');
    }
    std::string file(group);
    file.append(group.empty() ? "" : "/").append(option);
    if (!file.ends_with(".yaml") && !file.ends_with(".yml")) file += ".yaml";
    return HydraDefault{.file = std::move(file), .package = std::move(package)};
}

bool names_hydra_default(std::string_view name) {
    constexpr std::string_view kList = ".defaults.";
    const std::size_t at = name.rfind(kList);
    if (at == std::string_view::npos) return false;
    const std::string_view file = name.substr(0, at), number = name.substr(at + kList.size());
    return (file.ends_with(".yaml") || file.ends_with(".yml")) &&
           number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool instantiates(const Call& call) {
    const std::string_view name = call.name.str();
    return !call.args.empty() && name.starts_with("hydra.") && last_part(name) == "instantiate";
}

}  // namespace mp::lint::python
