// Every page in testdata/lint is a test of its rule. Its code is linted as for a user, with mp-lint's own headers, and
// the findings must match the `// expect: MPxxx severity` comments (`# expect: ...` in Python). `script/test --quick`
// lints the first program of each section in each language, `script/test` the others too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "analyzer/driver/lint.hpp"
#include "analyzer/rules/rule.hpp"

namespace mp::lint {

// Names the test of a page: "GetParam() = MP101", the same in every build.
void PrintTo(const Rule* rule, std::ostream* out) { *out << rule->id; }

namespace {

namespace fs = std::filesystem;

struct File {
    std::string name;
    std::string text;
};

// One program of a page: a code fence, or several that name their files.
struct Example {
    std::string section;
    int line = 0;  // of the fence, in the page
    std::vector<File> files;
};

bool is_unit(const std::string& name) { return name.ends_with(".cu") || name.ends_with(".cpp"); }

bool has_python(const Example& example) {
    return std::ranges::any_of(
        example.files, [](const File& f) { return f.name.ends_with(".py") || f.name.ends_with(".ipynb"); });
}

// "```cuda file=a.cuh" -> the file's name; by default by language.
std::string file_name(const std::string& info) {
    const auto at = info.find("file=");
    if (at != std::string::npos) return info.substr(at + 5);
    if (info.starts_with("python")) return "example.py";
    return info.starts_with("cuda") ? "example.cu" : "example.cpp";
}

// Fences that name their files belong together until the section ends or a fence names none.
std::vector<Example> examples_of(std::string_view page) {
    std::vector<Example> examples;
    std::istringstream in{std::string(page)};
    std::string line, section;
    bool open = false, joins = false;
    for (int number = 1; std::getline(in, line); ++number) {
        if (open) {
            if (line == "```")
                open = false;
            else
                examples.back().files.back().text += line + "\n";
        } else if (line.starts_with("## ")) {
            section = line.substr(3);
            joins = false;
        } else if (line.starts_with("```")) {
            const std::string info = line.substr(3);
            const bool named = info.find("file=") != std::string::npos;
            if (!named || !joins) examples.push_back({section, number, {}});
            examples.back().files.push_back({file_name(info), ""});
            joins = named;
            open = true;
        }
    }
    EXPECT_FALSE(open) << "a code fence is not closed";
    return examples;
}

// "example.cu:8 MP401 error", sorted.
using Lines = std::vector<std::string>;

Lines expected_of(const Example& example) {
    Lines expected;
    for (const File& file : example.files) {
        const bool hash = file.name.ends_with(".py") || file.name.ends_with(".txt");
        const std::string_view mark = hash ? "#" : "//";
        std::istringstream in(file.text);
        std::string line;
        for (int number = 1; std::getline(in, line); ++number) {
            const auto at = line.find(" expect: ");
            if (at == std::string::npos || !line.substr(0, at).ends_with(mark)) continue;
            std::istringstream list(line.substr(at + 9));
            for (std::string one; std::getline(list, one, ',');) {
                one.erase(0, one.find_first_not_of(' '));
                expected.push_back(file.name + ":" + std::to_string(number) + " " + one);
            }
        }
    }
    std::ranges::sort(expected);
    return expected;
}

class Folder {
public:
    Folder() {
        std::string name = (fs::temp_directory_path() / "mp-lint-page-XXXXXX").string();
        if (const char* made = mkdtemp(name.data())) path_ = made;
    }
    ~Folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

// mp-lint's own headers of torch, whatever is installed: the answer is the same everywhere, and a libtorch
// takes seconds an example to parse.
FrontEnds parts_with_stubs() {
    FrontEnds parts = real_front_ends();
    parts.translate = [](const CompileCommand& command, const ExtractOptions& options) {
        ExtractOptions with_stubs = options;
        with_stubs.torch = TorchHeaders::stubs;
        return real_front_ends().translate(command, with_stubs);
    };
    return parts;
}

LintOptions options_for(const Example& example, const Rule& rule, const fs::path& folder) {
    LintOptions options;
    // Modules are named from the directory that is linted, so Python is given as a directory.
    if (has_python(example)) options.inputs.push_back(folder.string());
    for (const File& file : example.files) {
        if (is_unit(file.name) && !has_python(example))
            options.inputs.push_back((folder / file.name).string());
    }
    options.working_directory = folder.string();
    options.flags = std::vector<std::string>{};
    options.cuda = CudaHeaders::stubs;
    options.use_cache = false;
    options.jobs = 1;
    // What runs by default, and the page's own rule.
    for (const Rule* other : all_rules())
        if (other->on_by_default || other == &rule) options.select.emplace_back(other->id);
    return options;
}

Lines found_in(const Report& report, const Rule& rule, const fs::path& folder) {
    Lines found;
    for (const Finding& f : report.findings) {
        if (f.severity == Severity::note && f.rule != rule.id) continue;
        const fs::path file(std::string(f.span.file.str()));
        found.push_back(file.lexically_relative(folder).string() + ":" + std::to_string(f.span.line) + " " +
                        std::string(f.rule) + " " + std::string(name_of(f.severity)));
    }
    std::ranges::sort(found);
    return found;
}

void check(const Example& example, const Rule& rule) {
    SCOPED_TRACE(std::string(rule.id) + ".md:" + std::to_string(example.line) + " (" + example.section + ")");
    const Folder folder;
    ASSERT_FALSE(folder.path().empty());
    for (const File& file : example.files) {
        fs::create_directories((folder.path() / file.name).parent_path());
        std::ofstream(folder.path() / file.name) << file.text;
    }
    const auto report = run_lint(options_for(example, rule, folder.path()), parts_with_stubs());
    ASSERT_TRUE(report) << report.error().message;
    for (const UnitResult& unit : report->units) {
        std::string why = unit.message;
        for (const Symbol message : unit.coverage.messages) why += "\n" + std::string(message.str());
        EXPECT_EQ(unit.state, UnitState::ok) << unit.path << ": " << why;
    }
    const Lines found = found_in(*report, rule, folder.path());
    EXPECT_EQ(expected_of(example), found);
    if (example.section == "Bad") {
        EXPECT_FALSE(found.empty());
    }
    if (example.section == "Good") {
        EXPECT_TRUE(found.empty());
    }
}

// Whether to take the programs that are the first of their section and language, or the others.
enum class Programs : std::uint8_t { first, other };

std::vector<Example> programs_of(std::string_view page, Programs wanted) {
    std::vector<Example> programs;
    std::set<std::pair<std::string, bool>> seen;
    for (Example& example : examples_of(page)) {
        const bool first = seen.emplace(example.section, has_python(example)).second;
        if (first == (wanted == Programs::first)) programs.push_back(std::move(example));
    }
    return programs;
}

class LintPage : public testing::TestWithParam<const Rule*> {
protected:
    static std::vector<Example> programs(Programs wanted) {
        return programs_of(rule_page(GetParam()->id), wanted);
    }
};

TEST_P(LintPage, FirstPrograms) {
    const auto examples = programs(Programs::first);
    ASSERT_FALSE(examples.empty());
    for (const Example& example : examples) check(example, *GetParam());
}

TEST_P(LintPage, OtherPrograms) {
    for (const Example& example : programs(Programs::other)) check(example, *GetParam());
}

INSTANTIATE_TEST_SUITE_P(Pages, LintPage, testing::ValuesIn(all_rules().begin(), all_rules().end()),
                         [](const auto& test) { return std::string(test.param->id); });

TEST(LintPageReader, FencesBecomeProgramsAndCommentsExpectations) {
    const auto examples = examples_of(
        "# MP401 x\n\n## Bad\n\n```cuda\na\nb  // expect: MP401 error, MP403 warning\n```\n\n"
        "```cuda file=a.cuh\nh  // expect: MP401 note\n```\n\nand\n\n```cuda "
        "file=b.cu\nk\n```\n\n## Good\n\n```cpp\nc\n```\n");
    ASSERT_EQ(examples.size(), 3u);
    EXPECT_EQ(expected_of(examples[0]), (Lines{"example.cu:2 MP401 error", "example.cu:2 MP403 warning"}));
    ASSERT_EQ(examples[1].files.size(), 2u);
    EXPECT_EQ(expected_of(examples[1]), Lines{"a.cuh:1 MP401 note"});
    EXPECT_EQ(examples[2].section, "Good");
    EXPECT_EQ(examples[2].files[0].name, "example.cpp");
}

TEST(LintPageReader, PythonHasItsOwnComments) {
    const auto examples = examples_of(
        "## Bad\n\n```python\nx  # expect: MP101 error\n# y // expect: MP102 error\n```\n\n"
        "```python file=pkg/a.py\nz  # why  # expect: MP103 note\n```\n");
    ASSERT_EQ(examples.size(), 2u);
    EXPECT_EQ(expected_of(examples[0]), Lines{"example.py:1 MP101 error"});
    EXPECT_EQ(expected_of(examples[1]), Lines{"pkg/a.py:1 MP103 note"});
}

TEST(LintPageReader, TheFirstProgramIsThatOfASectionAndALanguage) {
    constexpr std::string_view kPage =
        "## Bad\n\n```cuda\n```\n\n```cpp\n```\n\n```python\n```\n\n```python\n```\n\n## "
        "Good\n\n```cpp\n```\n";
    const auto lines = [&](Programs wanted) {
        std::vector<int> found;
        for (const Example& example : programs_of(kPage, wanted)) found.push_back(example.line);
        return found;
    };
    EXPECT_THAT(lines(Programs::first), testing::ElementsAre(3, 9, 17));
    EXPECT_THAT(lines(Programs::other), testing::ElementsAre(6, 12));
}

}  // namespace
}  // namespace mp::lint
