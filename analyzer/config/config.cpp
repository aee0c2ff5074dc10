#include "analyzer/config/config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <utility>

#include <toml++/toml.h>

#include "kernels/base/files.hpp"
#include "kernels/base/suggest.hpp"
#include "kernels/numerics/dtype.hpp"

namespace mp::lint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestConfig = 1 << 20;

// Reads one table key by key. Keeps the first error; after an error all reads are skipped.
class TableReader {
public:
    TableReader(const toml::table& table, std::string path, std::string prefix)
        : table_(table), path_(std::move(path)), prefix_(std::move(prefix)) {}

    using Handler = std::function<void(TableReader&, const toml::key&, const toml::node&)>;
    struct Entry {
        std::string_view key;
        Handler read;
    };

    void read(const std::vector<Entry>& entries) {
        std::vector<std::string_view> known;
        for (const Entry& e : entries) known.push_back(e.key);
        for (const auto& [key, node] : table_) {
            if (error) return;
            const Entry* entry = nullptr;
            for (const Entry& e : entries) {
                if (e.key == key.str()) entry = &e;
            }
            if (entry) {
                entry->read(*this, key, node);
            } else {
                fail(key.source(), "unknown key '" + prefix_ + std::string(key.str()) + "'",
                     did_you_mean(key.str(), known));
            }
        }
    }

    void fail(const toml::source_region& at, std::string message, std::string hint = {}) {
        if (error) return;
        error =
            Error{path_ + ":" + std::to_string(at.begin.line) + ": " + std::move(message), std::move(hint)};
    }

    void wrong_type(const toml::key& key, const toml::node& node, std::string_view wanted) {
        fail(node.source().begin.line ? node.source() : key.source(),
             "'" + prefix_ + std::string(key.str()) + "' must be " + std::string(wanted));
    }

    void strings(const toml::key& key, const toml::node& node, std::vector<std::string>& into) {
        const toml::array* list = node.as_array();
        if (!list) {
            wrong_type(key, node, "a list of strings");
            return;
        }
        for (const toml::node& item : *list) {
            const auto text = item.value_exact<std::string>();
            if (!text) {
                wrong_type(key, item, "a list of strings");
                return;
            }
            into.push_back(*text);
        }
    }

    void rules(const toml::key& key, const toml::node& node, Rules known, std::vector<std::string>& into) {
        strings(key, node, into);
        for (const std::string& word : into) {
            const Status ok = check_rule_word(word, known);
            if (!ok) fail(node.source(), ok.error().message, ok.error().hint);
        }
    }

    void string(const toml::key& key, const toml::node& node, std::string& into) {
        const auto text = node.value_exact<std::string>();
        if (text && !text->empty()) {
            into = *text;
        } else {
            wrong_type(key, node, "a string");
        }
    }

    const std::string& path() const { return path_; }
    std::optional<Error> error;

private:
    const toml::table& table_;
    std::string path_;
    std::string prefix_;
};

void read_half(TableReader& r, const toml::key& key, const toml::node& node, DType& into) {
    std::string name;
    r.string(key, node, name);
    const auto dtype = dtype_from_name(name);
    if (dtype && is_half(*dtype))
        into = *dtype;
    else
        r.wrong_type(key, node, "\"fp16\" or \"bf16\"");
}

std::vector<TableReader::Entry> region_entries(RegionConfig& regions) {
    using R = TableReader;
    using K = toml::key;
    using N = toml::node;
    auto list = [](std::vector<std::string>& into) {
        return [&into](R& r, const toml::key& k, const toml::node& n) { r.strings(k, n, into); };
    };
    return {
        {"guards", list(regions.guards)},
        {"enter", list(regions.enter)},
        {"leave", list(regions.leave)},
        {"functions", list(regions.functions)},
        {"dtype", [&regions](R& r, const K& k, const N& n) { read_half(r, k, n, regions.dtype); }},
    };
}

void read_regions(TableReader& outer, const toml::key& key, const toml::node& node, RegionConfig& regions) {
    const toml::table* table = node.as_table();
    if (!table) return outer.wrong_type(key, node, "a table");
    TableReader inner(*table, outer.path(), "regions.");
    inner.read(region_entries(regions));
    outer.error = std::move(inner.error);
}

void read_hmp(TableReader& outer, const toml::key& key, const toml::node& node, HmpLists& lists) {
    const toml::table* table = node.as_table();
    if (!table) return outer.wrong_type(key, node, "a table");
    auto file = [](std::string& into) {
        return [&into](TableReader& r, const toml::key& k, const toml::node& n) { r.string(k, n, into); };
    };
    TableReader inner(*table, outer.path(), "hmp.");
    inner.read({{"bf16", file(lists.bf16)}, {"fp32", file(lists.fp32)}});
    outer.error = std::move(inner.error);
}

void read_per_file(TableReader& outer, const toml::key& key, const toml::node& node, Rules rules,
                   std::vector<PerFileIgnore>& into) {
    const toml::table* table = node.as_table();
    if (!table) return outer.wrong_type(key, node, "a table of \"pattern\" = [rules]");
    for (const auto& [pattern, list] : *table) {
        PerFileIgnore ignore{.pattern = std::string(pattern.str()), .rules = {}};
        outer.rules(pattern, list, rules, ignore.rules);
        into.push_back(std::move(ignore));
    }
}

void read_timeout(TableReader& r, const toml::key& key, const toml::node& node, Config& config) {
    const auto seconds = node.value<double>();
    if (node.is_number() && seconds && std::isfinite(*seconds) && *seconds > 0) {
        config.timeout = seconds;
    } else {
        r.wrong_type(key, node, "a number of seconds above 0");
    }
}

void read_jobs(TableReader& r, const toml::key& key, const toml::node& node, Config& config) {
    const auto jobs = node.value_exact<std::int64_t>();
    if (jobs && *jobs >= 1 && *jobs <= 1024) {
        config.jobs = static_cast<int>(*jobs);
    } else {
        r.wrong_type(key, node, "a whole number from 1 to 1024");
    }
}

void read_profile(TableReader& r, const toml::key& key, const toml::node& node, Config& config) {
    r.string(key, node, config.profile);
    if (!config.profile.empty() && config.profile != "training" && config.profile != "inference") {
        r.wrong_type(key, node, "\"training\" or \"inference\"");
    }
}

void read_device(TableReader& r, const toml::key& key, const toml::node& node, Config& config) {
    r.string(key, node, config.device);
    const auto known = device_names();
    if (std::ranges::find(known, config.device) == known.end()) {
        r.wrong_type(key, node, "one of cuda, cpu, hpu, xpu, mps, xla");
    }
}

std::vector<TableReader::Entry> entries(Config& config, Rules rules) {
    using R = TableReader;
    using K = toml::key;
    using N = toml::node;
    return {
        {"select", [&config, rules](R& r, const K& k, const N& n) { r.rules(k, n, rules, config.select); }},
        {"ignore", [&config, rules](R& r, const K& k, const N& n) { r.rules(k, n, rules, config.ignore); }},
        {"exclude", [&config](R& r, const K& k, const N& n) { r.strings(k, n, config.exclude); }},
        {"extra-args", [&config](R& r, const K& k, const N& n) { r.strings(k, n, config.extra_args); }},
        {"cuda", [&config](R& r, const K& k, const N& n) { r.string(k, n, config.cuda); }},
        {"torch-headers", [&config](R& r, const K& k, const N& n) { r.string(k, n, config.torch_headers); }},
        {"torch", [&config](R& r, const K& k, const N& n) { r.string(k, n, config.torch); }},
        {"device", [&config](R& r, const K& k, const N& n) { read_device(r, k, n, config); }},
        {"assume", [&config](R& r, const K& k, const N& n) { read_half(r, k, n, config.assume); }},
        {"policies", [&config](R& r, const K& k, const N& n) { r.strings(k, n, config.policies); }},
        {"hmp", [&config](R& r, const K& k, const N& n) { read_hmp(r, k, n, config.hmp); }},
        {"profile", [&config](R& r, const K& k, const N& n) { read_profile(r, k, n, config); }},
        {"timeout", [&config](R& r, const K& k, const N& n) { read_timeout(r, k, n, config); }},
        {"jobs", [&config](R& r, const K& k, const N& n) { read_jobs(r, k, n, config); }},
        {"regions", [&config](R& r, const K& k, const N& n) { read_regions(r, k, n, config.regions); }},
        {"per-file-ignores",
         [&config, rules](R& r, const K& k, const N& n) {
             read_per_file(r, k, n, rules, config.per_file_ignores);
         }},
    };
}

Result<Config> from_table(const toml::table& table, const std::string& path, Rules rules) {
    Config config;
    config.path = path;
    config.directory = fs::path(path).parent_path().string();
    TableReader reader(table, path, "");
    reader.read(entries(config, rules));
    if (reader.error) return std::move(*reader.error);
    return config;
}

Result<toml::table> parse_toml(std::string_view text, const std::string& path) {
    try {
        return toml::parse(text, path);
    } catch (const toml::parse_error& e) {
        return Error{path + ":" + std::to_string(e.source().begin.line) + ": " + std::string(e.description()),
                     "configuration files are TOML 1.0"};
    }
}

const toml::table* tool_table(const toml::table& root) {
    const toml::table* tool = root["tool"].as_table();
    return tool ? (*tool)["mp-lint"].as_table() : nullptr;
}

bool is_pyproject(const std::string& path) { return fs::path(path).filename() == "pyproject.toml"; }

Result<std::string> read_small_file(const std::string& path) {
    const Result<std::string> text =
        read_named_file(path, kLargestConfig, "1 MiB, which no configuration is");
    if (!text) return Error{path + ": " + text.error().message, ""};
    return *text;
}

bool is_file(const fs::path& path) {
    std::error_code none;
    return fs::is_regular_file(path, none);
}

}  // namespace

std::span<const std::string_view> device_names() {
    static constexpr std::array<std::string_view, 6> kDevices{"cuda", "cpu", "hpu", "xpu", "mps", "xla"};
    return kDevices;
}

Result<Config> parse_config(std::string_view text, const std::string& path, Rules rules, bool pyproject) {
    const Result<toml::table> root = parse_toml(text, path);
    if (!root) return root.error();
    if (!pyproject) return from_table(*root, path, rules);
    const toml::table* table = tool_table(*root);
    return table ? from_table(*table, path, rules) : Result<Config>(Config{});
}

Result<Config> load_config(const std::string& path, Rules rules) {
    const Result<std::string> text = read_small_file(path);
    if (!text) return text.error();
    return parse_config(*text, path, rules, is_pyproject(path));
}

Result<Config> find_config(const std::string& directory, Rules rules) {
    for (fs::path at = directory; !at.empty(); at = at.parent_path()) {
        for (const char* name : {"mp-lint.toml", ".mp-lint.toml"}) {
            if (is_file(at / name)) return load_config((at / name).string(), rules);
        }
        // A broken pyproject.toml is an error only if it mentions mp-lint.
        if (is_file(at / "pyproject.toml")) {
            const auto text = read_small_file((at / "pyproject.toml").string());
            if (text && text->find("mp-lint") != std::string::npos) {
                Result<Config> config = load_config((at / "pyproject.toml").string(), rules);
                if (!config || !config->path.empty()) return config;
            }
        }
        if (at == at.parent_path()) break;
    }
    return Config{};
}

}  // namespace mp::lint
