#include "analyzer/python/config_files.hpp"

#include <gtest/gtest.h>

#include "analyzer/facts/text.hpp"

namespace mp::lint::python {
namespace {

// "line:column key=value" of each setting.
std::string settings(const std::string& path, std::string_view text) {
    const Unit unit = extract_config({.path = path, .module = "", .text = text});
    std::string out;
    for (const Function& f : unit.functions)
        for (const Setting& s : f.settings)
            out += std::to_string(s.span.line) + ":" + std::to_string(s.span.column) + " " +
                   std::string(s.key.str()) + "=" + std::string(s.value.constant.str()) + "\n";
    return out;
}

TEST(ConfigFiles, DeepSpeedKeysAreFlattened) {
    EXPECT_EQ(settings("ds.json",
                       "{\n \"fp16\": {\"enabled\": true, \"initial_scale_power\": 16},\n"
                       " \"communication_data_type\": \"fp16\",\n"
                       " \"data_types\": {\"grad_accum_dtype\": null}\n}\n"),
              "2:22 fp16.enabled=true\n2:51 fp16.initial_scale_power=16\n"
              "3:29 communication_data_type='fp16'\n4:37 data_types.grad_accum_dtype=None\n");
}

TEST(ConfigFiles, GaudiListsGiveOneSettingPerOp) {
    EXPECT_EQ(settings("gaudi_config.json",
                       "{\"use_torch_autocast\": true, \"autocast_bf16_ops\": [\"softmax\", \"add\"],\n"
                       " \"hmp_fp32_ops\": [\"log\"]}"),
              "1:24 use_torch_autocast=true\n1:52 bf16_ops='softmax'\n1:63 bf16_ops='add'\n"
              "2:19 fp32_ops='log'\n");
}

TEST(ConfigFiles, OpListsGiveOneSettingPerLine) {
    EXPECT_EQ(settings("/data/ops_bf16.txt", "# low\nlinear\n  div  # why\r\n\nrelu"),
              "2:1 bf16_ops='linear'\n3:3 bf16_ops='div'\n5:1 bf16_ops='relu'\n");
    EXPECT_EQ(settings("ops_fp32.txt", "softmax\n"), "1:1 fp32_ops='softmax'\n");
    EXPECT_EQ(settings("mine.txt", "softmax\n"), "1:1 ops='softmax'\n");
}

TEST(ConfigFiles, OtherFilesGiveNothing) {
    EXPECT_EQ(settings("package.json", "{\"name\": \"x\", \"fp\": 1}"), "");
    EXPECT_EQ(settings("ds.json", "{\"fp16\": {\"enabled\": true"), "");
    EXPECT_EQ(settings("ds.json", "[1, 2]"), "");
    EXPECT_EQ(settings("ds.json", ""), "");
    EXPECT_EQ(settings("requirements.txt", "torch\nnumpy>=1.20\n"), "");
    EXPECT_EQ(settings("requirements.txt", "torch\nnumpy\n"), "");
    EXPECT_EQ(settings("notes.txt", "the loss is nan\n"), "");
    EXPECT_EQ(settings("empty.txt", ""), "");
    EXPECT_TRUE(extract_config({.path = "notes.txt", .module = "", .text = "x y"}).functions.empty());
}

TEST(ConfigFiles, FactsOfAConfigurationCanBePrinted) {
    const Unit unit =
        extract_config({.path = "ds.json", .module = "", .text = "{\"bf16\": {\"enabled\": true}}"});
    const Result<Unit> back = parse_facts(print_facts(unit));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, unit);
}

TEST(ConfigFiles, NamesOfConfigurationsAreFound) {
    const Result<Unit> unit = parse_facts(
        "unit a.py language=python\n"
        "  func 1:1 m.<module> kind=python\n"
        "    call 1:1 habana_frameworks.torch.hpex.hmp.convert args=[{object "
        "constant=\"'lists/a.txt'\" "
        "keyword=bf16_file_path}]\n"
        "    call 2:1 deepspeed.initialize args=[{object constant=\"'ds.json'\" keyword=config}]\n"
        "    call 3:1 open args=[{object constant=\"'data.json'\"}]\n"
        "    call 4:1 open args=[{object constant=\"'ds_config.json'\"}]\n"
        "    call 5:1 open args=[{object constant=\"'ds_config.json'\"}]\n"
        "    call 7:1 open args=[{object constant=\"'conf/base.yml'\"}]\n"
        "    call 8:1 open args=[{object constant=\"'settings.json'\"}]\n"
        "    setting 6:1 os.environ.PT_HPU_AUTOCAST_LOWER_PRECISION_OPS_LIST value.shape=object "
        "value.constant=\"'/data/l.txt'\"\n"
        "    define 9:1 m.FILE value.shape=object value.constant=\"'a.yaml'\"\n"
        "  func 10:1 m.load kind=python params=[{object name=path constant=\"'b.yaml'\"}]\n"
        "  func 12:1 m.main kind=python annotations=[\"hydra.main(config_path='conf', "
        "config_name='train')\"]\n");
    ASSERT_TRUE(unit) << unit.error().message;
    EXPECT_EQ(
        configuration_files(*unit),
        (std::vector<std::string>{"lists/a.txt", "ds.json", "ds_config.json", "conf/base.yml",
                                  "settings.json", "/data/l.txt", "a.yaml", "b.yaml", "conf/train.yaml"}));
}

TEST(ConfigFiles, AConfigurationNamesTheFilesOfItsDefaults) {
    const Unit unit =
        extract_config({.path = "/a/c.yaml",
                        .module = "",
                        .text = "defaults: [_self_, base, {/db@_global_: my.yaml}, {override a/b: x},"
                                "{optional o: p}, {q: '${r}'}, {s: null}]\nother: data.yaml\n"});
    EXPECT_EQ(configuration_files(unit),
              (std::vector<std::string>{"base.yaml", "db/my.yaml", "a/b/x.yaml", "o/p.yaml"}));
}

TEST(ConfigFiles, CodeThatLoadsJsonNamesEachJsonFile) {
    const std::string open = "    call 1:1 open args=[{object constant=\"'run.json'\"}]\n";
    const std::string start = "unit a.py language=python\n  func 1:1 m.<module> kind=python\n";
    const Result<Unit> plain = parse_facts(start + open);
    const Result<Unit> loads = parse_facts(start + open + "    call 2:1 json.load args=[{other call=0}]\n");
    ASSERT_TRUE(plain && loads);
    EXPECT_TRUE(configuration_files(*plain).empty());
    EXPECT_EQ(configuration_files(*loads), std::vector<std::string>{"run.json"});
}

}  // namespace
}  // namespace mp::lint::python
