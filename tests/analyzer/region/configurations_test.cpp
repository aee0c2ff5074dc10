#include "analyzer/region/configurations.hpp"

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

// A file under /w/conf. Entries are "key=value"; "key" alone is a mapping.
std::string file(const std::string& name, const std::vector<std::string>& entries) {
    const std::string path = "/w/conf/" + name;
    std::string text =
        "unit " + path + " language=python\n  func 1:1 <file> usr=" + path + ":<file> kind=python\n";
    const auto define = [&](const std::string& key, const std::string& value) {
        text += "    define 1:1 " + path + key + " value.shape=object " + value + "\n";
    };
    for (const std::string& entry : entries) {
        const std::size_t equals = entry.find('=');
        const std::string key = (entry.front() == '@' ? "" : ".") + entry.substr(0, equals);
        if (equals == std::string::npos)
            define(key, "value.refers=" + path + key);
        else
            define(key, "value.constant=\"'" + entry.substr(equals + 1) + "'\"");
    }
    define("", "value.refers=" + path);
    return text;
}

class Composed {
public:
    explicit Composed(const std::vector<std::string>& files)
        : units_(units_of(files)), names_(units_), finder_(names_), all_(finder_) {}

    // "value", "value?" when it is assumed, "{a b}" for the keys of a mapping, "" for nothing.
    std::string operator[](const std::string& path) {
        Symbol mapping = all_.composed(Symbol("/w/conf/train.yaml"));
        std::string rest = path;
        for (;;) {
            const std::string key = rest.substr(0, rest.find('.'));
            const Configurations::Value found = all_.member(mapping, key);
            if (!found.operand) return "";
            rest = rest.substr(std::min(key.size() + 1, rest.size()));
            if (rest.empty()) return text(found);
            mapping = found.operand->refers;
        }
    }

private:
    std::string text(const Configurations::Value& found) {
        if (found.operand->refers.empty())
            return std::string(found.operand->constant.str()) + (found.assumed ? "?" : "");
        std::string keys;
        for (const Symbol key : all_.keys(found.operand->refers))
            keys.append(keys.empty() ? "" : " ").append(key.str());
        return "{" + keys + "}";
    }

    std::vector<Unit> units_;
    Names names_;
    NameFinder finder_;
    Configurations all_;
};

const std::string kGpu =
    file("trainer/gpu.yaml", {"kind=gpu", "precision=16-mixed", "plugin", "plugin.name=amp"});

TEST(Configurations, AFileWithoutDefaultsIsItself) {
    Composed plain({file("train.yaml", {"a", "a.b=c"})});
    EXPECT_EQ(plain["a.b"], "'c'");
    EXPECT_EQ(plain["a"], "{b}");
    EXPECT_EQ(plain["b"], "");
}

TEST(Configurations, AGroupStandsBelowItsNameAndIsMerged) {
    Composed all(
        {file("train.yaml", {"defaults.0=trainer=gpu", "trainer", "trainer.kind=tpu", "seed=1"}), kGpu});
    EXPECT_EQ(all["trainer.kind"], "'tpu'");
    EXPECT_EQ(all["trainer.precision"], "'16-mixed'?");
    EXPECT_EQ(all["trainer"], "{kind precision plugin}");
    EXPECT_EQ(all["trainer.plugin.name"], "'amp'?");
    EXPECT_EQ(all["seed"], "'1'");
    EXPECT_EQ(all["gpu"], "");
}

TEST(Configurations, TheLaterOfTwoWins) {
    Composed before(
        {file("train.yaml", {"defaults.0=_self_", "defaults.1=trainer=gpu", "trainer", "trainer.kind=tpu"}),
         kGpu});
    EXPECT_EQ(before["trainer.kind"], "'gpu'?");
    Composed replaced({file("train.yaml", {"defaults.0=trainer=gpu", "trainer=none"}), kGpu});
    EXPECT_EQ(replaced["trainer"], "'none'");
}

TEST(Configurations, FilesOfAGroupHaveDefaultsAndPackages) {
    Composed all({file("train.yaml", {"defaults.0=trainer=gpu", "defaults.1=/trainer@other=base",
                                      "defaults.2=experiment=x", "defaults.3=sub/net=big"}),
                  file("trainer/gpu.yaml", {"defaults.0=base", "kind=gpu"}),
                  file("trainer/base.yaml", {"@package=_group_", "kind=cpu", "precision=32"}),
                  file("experiment/x.yaml", {"@package=_global_", "seed=2"}),
                  file("sub/net/big.yaml", {"width=9"})});
    EXPECT_EQ(all["trainer.kind"], "'gpu'?");
    EXPECT_EQ(all["trainer.precision"], "'32'?");
    EXPECT_EQ(all["other.kind"], "'cpu'?");
    EXPECT_EQ(all["seed"], "'2'?");
    EXPECT_EQ(all["sub.net.width"], "'9'?");
}

TEST(Configurations, AReferenceToAnotherKeyIsFollowed) {
    Composed all(
        {file("train.yaml", {"a=${b.c}", "b", "b.c=x", "d=${b}-y", "e=${oc.env:HOME}", "f=${f}", "g=${h}"})});
    EXPECT_EQ(all["a"], "'x'");
    for (const char* unknown : {"d", "e", "f", "g"}) EXPECT_EQ(all[unknown], "") << unknown;
}

TEST(Configurations, FilesThatAllNameEachOtherEnd) {
    std::vector<std::string> files;
    for (int i = 0; i < 40; ++i) {
        std::vector<std::string> entries;
        for (int j = 0; j < 40; ++j)
            entries.push_back("defaults." + std::to_string(j) + "=/g=" + std::to_string(j));
        entries.push_back("a" + std::to_string(i) + "=1");
        files.push_back(file(i == 0 ? "train.yaml" : "g/" + std::to_string(i) + ".yaml", entries));
    }
    EXPECT_EQ(Composed(files)["a0"], "'1'");  // 40 to the power of 6 layers would take hours
}

TEST(Configurations, FilesThatNameEachOtherEnd) {
    Composed all({file("train.yaml", {"defaults.0=trainer=gpu", "a=1"}),
                  file("trainer/gpu.yaml", {"defaults.0=/train", "kind=gpu"})});
    EXPECT_EQ(all["trainer.kind"], "'gpu'?");
    EXPECT_EQ(all["a"], "'1'");
}

}  // namespace
}  // namespace mp::lint
