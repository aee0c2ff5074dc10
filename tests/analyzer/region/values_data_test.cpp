#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

std::string data_file(const std::string& path, const std::string& dtype) {
    return "unit " + path + " language=python\n  func 1:1 <file> usr=" + path +
           ":<file> kind=python\n    define 1:8 " + path + ".a.dtype value.shape=object value.constant=\"'" +
           dtype + "'\"\n    define 1:1 " + path + ".a value.shape=object value.refers=" + path +
           ".a\n    define 1:1 " + path + " value.shape=object value.refers=" + path + "\n";
}

const std::string kLoads =
    "    call 2:1 open args=[{object PATH}]\n"
    "    call 2:2 yaml.safe_load callee=yaml.safe_load args=[{other call=0}] result.shape=other\n";
const std::string kReads =
    "    call 3:1 ?.__getitem__ kind=op args=[{other call=1} {object constant=\"'a'\"}] result.shape=other\n"
    "    call 3:2 ?.__getitem__ kind=op args=[{other call=2} {object constant=\"'dtype'\"}] "
    "result.shape=other\n"
    "    call 3:3 g args=[{other call=3}]\n";

std::string with(std::string text, const std::string& path) {
    return text.replace(text.find("PATH"), 4, path);
}

std::string module_of(const std::string& body) {
    return "unit /w/src/m.py language=python\n  func 1:1 m.<module> kind=python\n" + body;
}

// What the call of g gets, when the program has /w/conf/a.yaml with bf16 and /w/conf/b.yaml with fp16.
std::string passed(const std::string& module) {
    const Program program =
        linked({data_file("/w/conf/a.yaml", "bf16"), data_file("/w/conf/b.yaml", "fp16"), module});
    std::string all;
    for (const Function* f : program.functions())
        for (const Call& call : f->calls)
            if (call.name.str() == "g") all += std::string(call.args.at(0).constant.str());
    return all;
}

TEST(DataValues, KeysAreReadFromTheNearestFile) {
    EXPECT_EQ(passed(module_of(with(kLoads, "constant=\"'conf/a.yaml'\"") + kReads)), "'bf16'");
    EXPECT_EQ(passed(module_of(with(kLoads, "constant=\"'../conf/b.yaml'\"") + kReads)), "'fp16'");
    EXPECT_EQ(passed(module_of(with(kLoads, "constant=\"'conf/c.yaml'\"") + kReads)), "");
    EXPECT_EQ(passed(module_of(with(kLoads, "name=path") + kReads)), "");
}

TEST(DataValues, APathIsJoinedFromConstantsAndThePlaceOfTheCode) {
    const auto joined = [](const std::string& first) {
        return module_of("    call 2:1 os.path.join args=[{other " + first +
                         "} {object constant=\"'conf'\"} "
                         "{object constant=\"'a.yaml'\"}]\n"
                         "    call 2:2 yaml.safe_load args=[{other call=0}] result.shape=other\n" +
                         kReads);
    };
    EXPECT_EQ(passed(joined("text=os.path.dirname(__file__)")), "'bf16'");
    EXPECT_EQ(passed(joined("name=root text=root")), "");
}

TEST(DataValues, EachCallerOfALoaderNamesItsFile) {
    const std::string loader = "  func 1:5 m.load kind=python params=[{other name=path}]\n" +
                               with(kLoads, "param=0 name=path") + "    return other call=1\n";
    const auto caller = [](const std::string& name, const std::string& file) {
        return "  func 5:5 m." + name +
               " kind=python\n    call 6:1 m.load callee=m.load args=[{object constant=\"'conf/" + file +
               ".yaml'\"}]\n    call 6:2 ?.__getitem__ kind=op args=[{other call=0} {object "
               "constant=\"'a'\"}]\n"
               "    call 6:3 ?.__getitem__ kind=op args=[{other call=1} {object constant=\"'dtype'\"}]\n"
               "    call 6:4 g args=[{other call=2}]\n";
    };
    EXPECT_EQ(passed(module_of("") + loader + caller("x", "a") + caller("y", "b")), "'bf16''fp16'");
}

TEST(DataValues, AKeyThatCodeStoresIsNotTaken) {
    const std::string stores =
        "    call 4:1 ?.__setitem__ kind=op args=[{other call=2} {object constant=\"'dtype'\"} {other "
        "name=x}]\n";
    EXPECT_EQ(passed(module_of(with(kLoads, "constant=\"'conf/a.yaml'\"") + kReads + stores)), "");
}

TEST(DataValues, AKeyThatTheFileLacksHasTheDefaultOfGet) {
    const std::string get =
        "    call 3:1 ?.get kind=method args=[{other call=1} {object constant=\"'b'\"} {object "
        "constant=\"'fp32'\"}]\n"
        "    call 3:3 g args=[{other call=2}]\n";
    EXPECT_EQ(passed(module_of(with(kLoads, "constant=\"'conf/a.yaml'\"") + get)), "'fp32'");
    EXPECT_EQ(passed(module_of(with(kLoads, "name=path") + get)), "");
}

}  // namespace
}  // namespace mp::lint
