#include "analyzer/driver/given_options.hpp"

#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/base/files.hpp"

namespace mp::lint {
namespace {

bool gives(std::string_view text, TextKind kind, std::string_view option = "fp16") {
    return std::ranges::binary_search(given_options(text, kind), hash_bytes(option));
}
bool code_gives(std::string_view text) { return gives(text, TextKind::code); }
bool data_gives(std::string_view text) { return gives(text, TextKind::data); }

TEST(GivenOptions, CommandsGiveThem) {
    for (const std::string_view text :
         {"python train.py --fp16", "train --fp16 \\\n --lr 1", "run --model.fp16=true", "`--fp16`",
          "args: [\"--fp16\"]", "--fp16 True"})
        EXPECT_TRUE(data_gives(text)) << text;
    EXPECT_TRUE(gives("run --mixed-precision fp16", TextKind::data, "mixed_precision"));
    for (const std::string_view text : {"--fp16 False", "--fp16=0", "--no-fp16", "a--fp16", "fp16"})
        EXPECT_FALSE(data_gives(text)) << text;
}

TEST(GivenOptions, ConfigurationsGiveThem) {
    for (const std::string_view text : {"fp16: true", "\"fp16\": true,", "fp16 = O1",
                                        "  fp16: {\"enabled\": true}", "trainer.fp16=true", "fp16: 16"})
        EXPECT_TRUE(data_gives(text)) << text;
    for (const std::string_view text :
         {"fp16: false", "\"fp16\": null", "fp16 = 0", "fp16:\n", "use_fp16: true", "fp16 == 1", "# fp16"})
        EXPECT_FALSE(data_gives(text)) << text;
}

TEST(GivenOptions, CodeGivesThemWhereItWritesTrue) {
    for (const std::string_view text :
         {"fp16 = True", "f(fp16=True)", "{'fp16': True}", "args.fp16 = True", "run([\"a.py\", \"--fp16\"])",
          "\"\"\"python train.py --fp16\"\"\"", "\"!python train.py --fp16\\n\""})
        EXPECT_TRUE(code_gives(text)) << text;
    for (const std::string_view text : {"fp16 = False", "f(fp16=args.fp16)", "fp16: bool = False",
                                        "p.add_argument('--fp16', action='store_true')",
                                        "p.add_argument(\n    '-f', '--fp16',\n", "@click.option('--fp16')"})
        EXPECT_FALSE(code_gives(text)) << text;
}

TEST(GivenOptions, ValuesThatNameAPrecisionAreKept) {
    for (const std::string_view text :
         {"--precision fp16", "--precision=fp16", "precision: fp16", "\"precision\": \"fp16\""})
        EXPECT_TRUE(gives(text, TextKind::data, "precision=fp16")) << text;
    for (const std::string_view text :
         {"precision = 'fp16'", "f(precision=\"fp16\")", "{'precision': 'fp16'}"})
        EXPECT_TRUE(gives(text, TextKind::code, "precision=fp16")) << text;
    EXPECT_TRUE(gives("precision: 16-mixed", TextKind::data, "precision=16-mixed"));
    EXPECT_FALSE(gives("precision: bf16", TextKind::data, "precision=fp16"));
    EXPECT_FALSE(gives("if precision == 'fp16'", TextKind::code, "precision=fp16"));
}

TEST(GivenOptions, AnOptionOfALibraryIsNoneOfTheProgram) {
    const auto code = [](std::string_view text) { return gives(text, TextKind::code, "load_in_4bit"); };
    EXPECT_FALSE(code("BitsAndBytesConfig(\n    quant(1),\n    load_in_4bit=True,\n)"));
    EXPECT_FALSE(code("AutoModel.from_pretrained(name, load_in_4bit=True)"));
    EXPECT_TRUE(code("Actor(BitsAndBytesConfig(), load_in_4bit=True)"));
    EXPECT_TRUE(code("load_in_4bit = True"));
}

TEST(GivenOptions, TextsAreKnownByTheirNames) {
    for (const std::string_view path : {"/p/run.sh", "a.yaml", "/p/README.md", "Makefile", "ds.json"})
        EXPECT_TRUE(is_project_text(path)) << path;
    for (const std::string_view path : {"a.py", "a.cu", "data.csv", "a.txt", "/p/Makefile/x"})
        EXPECT_FALSE(is_project_text(path)) << path;
}

}  // namespace
}  // namespace mp::lint
