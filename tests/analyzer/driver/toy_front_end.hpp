#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>

#include "analyzer/driver/discover.hpp"
#include "analyzer/driver/lint.hpp"
#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {

namespace fs = std::filesystem;

// A front end for a toy language: "fn name" makes a function, "include path" reads a file, and "crash",
// "hang" and "fail" do so. It runs in worker processes like the real front end, so it logs each extraction
// as one line in a file.
inline std::string g_log;

inline std::string content_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void read_toy(const std::string& path, Unit& unit) {
    const std::string text = content_of(path);
    unit.dependencies.push_back({Symbol(path), text.size(), 0, 0});
    std::istringstream in(text);
    std::uint32_t number = 0;
    for (std::string line; std::getline(in, line);) {
        ++number;
        if (line.starts_with("crash")) std::abort();
        if (line.starts_with("hang")) ::sleep(1000);
        if (line.starts_with("fail")) unit.state = UnitState::failed;
        if (line.starts_with("odd")) unit.state = UnitState::partial;
        if (line.starts_with("include "))
            read_toy(absolute_path(line.substr(8), fs::path(path).parent_path().string()), unit);
        if (!line.starts_with("fn ")) continue;
        Function f;
        f.name = Symbol(line.substr(3, line.find("  ") - 3));
        f.usr = Symbol(path + std::string(f.name.str()));
        f.display = f.name;
        f.span = {.file = Symbol(path), .line = number, .column = 4};
        unit.functions.push_back(f);
    }
}

inline Unit toy_extract(const Invocation& in, const ExtractOptions&) {
    std::ofstream(g_log, std::ios::app) << fs::path(in.file).filename().string() << "\n";
    Unit unit;
    unit.path = Symbol(in.file);
    unit.coverage.functions = 1;
    read_toy(in.file, unit);
    return unit;
}

inline Invocation toy_translate(const CompileCommand& c, const ExtractOptions&) {
    Invocation in;
    in.file = c.file;
    in.directory = c.directory;
    in.host = c.arguments;
    return in;
}

inline CompileCommand toy_command(const std::string& file, const std::vector<std::string>& flags) {
    CompileCommand c{.file = file, .directory = "/", .arguments = {"toy"}};
    c.arguments.insert(c.arguments.end(), flags.begin(), flags.end());
    return c;
}

inline CompileDatabase g_database;

inline void complain(const RuleContext& context, Findings& out) {
    for (const Function* f : context.program.functions()) {
        if (f->name == Symbol("fine")) continue;
        out.push_back({.rule = "MP901",
                       .severity = Severity::warning,
                       .span = f->span,
                       .message = "a function",
                       .fix = {},
                       .notes = {},
                       .function = f->display});
    }
}

inline constexpr std::array<std::string_view, 5> kToyTriggers{"<half>", "float16", "bf16", "autocast", "-#e"};
inline constexpr Rule kToy{
    .id = "MP901", .name = "toy-rule", .confirmed_by = "", .triggers = {kToyTriggers}, .check = complain};
inline constexpr const Rule* kRules[] = {&kToy};

// The same language in Python files; "module" makes a function named as the file's module.
inline Unit toy_python(const python::Source& source) {
    std::ofstream(g_log, std::ios::app) << fs::path(source.path).filename().string() << "\n";
    Unit unit;
    unit.path = Symbol(source.path);
    unit.language = Language::python;
    unit.coverage.functions = 1;
    read_toy(source.path, unit);
    unit.dependencies.clear();
    if (source.text.starts_with("module")) {
        Function f;
        f.usr = f.name = f.display = Symbol(source.module);
        f.span = {.file = unit.path, .line = 1, .column = 1};
        unit.functions.push_back(f);
    }
    return unit;
}

// "fn ops.txt" names a file.
inline std::vector<std::string> toy_configuration_files(const Unit& unit) {
    std::vector<std::string> out;
    for (const Function& f : unit.functions) {
        if (f.name.str().ends_with(".txt")) out.emplace_back(f.name.str());
    }
    return out;
}

inline std::string toy_module(const std::string& path, const std::string& root) {
    std::string name = fs::path(path).lexically_relative(root).replace_extension().string();
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

class LintTest : public TemporaryTree {
protected:
    void SetUp() override {
        TemporaryTree::SetUp();
        g_log = path("log");
        g_database = {};
        options_.working_directory = path("p");
        options_.cache_directory = path("cache");
        options_.jobs = 2;
        fs::create_directories(path("p"));
        parts_ = {.translate = toy_translate,
                  .extract = toy_extract,
                  .version = [] { return std::string("toy 1"); },
                  .default_command = toy_command,
                  .load_database = [](const std::string&) { return Result<CompileDatabase>(g_database); },
                  .find_database =
                      [](const std::string&) {
                          return std::string(g_database.commands.empty() ? "" : "/db/compile_commands.json");
                      },
                  .extract_python = toy_python,
                  .is_relevant = [](std::string_view, std::string_view text) { return text != "dull\n"; },
                  .configuration_files = toy_configuration_files,
                  .module_name = toy_module,
                  .rules = kRules,
                  .rule_page = [](std::string_view) { return std::string_view("# MP901 toy-rule\n"); }};
    }

    // Old enough for its time to be trusted.
    void write_old(const std::string& name, const std::string& text, long age = 1000) const {
        write(name, text);
        set_age(name, age);
    }
    void set_age(const std::string& name, long age) const {
        timespec times[2] = {};
        times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - age;
        ::utimensat(AT_FDCWD, path(name).c_str(), times, 0);
    }

    Report run() const {
        Result<Report> report = run_lint(options_, parts_);
        if (!report) {
            ADD_FAILURE() << report.error().message;
            return {};
        }
        return std::move(*report);
    }
    std::string error() const {
        const Result<Report> report = run_lint(options_, parts_);
        return report ? "" : report.error().message;
    }
    std::vector<std::string> places(const Findings& findings) const {
        std::vector<std::string> out;
        for (const Finding& f : findings) {
            out.push_back(fs::path(f.span.file.str()).lexically_relative(path("p")).string() + ":" +
                          std::to_string(f.span.line));
        }
        return out;
    }
    std::vector<std::string> extracted() {
        std::vector<std::string> out;
        std::istringstream in(content_of(g_log));
        for (std::string line; std::getline(in, line);) out.push_back(line);
        fs::remove(g_log);
        return out;
    }

    LintOptions options_;
    FrontEnds parts_;
};

}  // namespace mp::lint
