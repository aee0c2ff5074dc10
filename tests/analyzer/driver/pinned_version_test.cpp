#include "analyzer/driver/pinned_version.hpp"

#include <sys/stat.h>

#include "tests/analyzer/driver/temporary_tree.hpp"

namespace mp::lint {
namespace {

class PinnedVersion : public TemporaryTree {
protected:
    std::string pinned() const {
        const TorchVersion found = pinned_version(path(), "torch");
        return found.known() ? std::to_string(found.major) + "." + std::to_string(found.minor) : "";
    }
    std::string pinned_by(const std::string& file, const std::string& text) {
        write(file, text);
        const std::string found = pinned();
        std::filesystem::remove(path(file));
        return found;
    }
};

TEST_F(PinnedVersion, AnExactVersionIsRead) {
    EXPECT_EQ(pinned_by("requirements.txt", "numpy\ntorch==2.1.0+cu118 ; python_version > '3.8'\n"), "2.1");
    EXPECT_EQ(pinned_by("requirements-dev.txt", "torch == 1.13.1"), "1.13");
    EXPECT_EQ(pinned_by("environment.yml", "dependencies:\n  - pytorch=2.2.0=py3.10_cuda12\n"), "2.2");
    EXPECT_EQ(pinned_by("env.yaml", "  - pip:\n    - torch==2.0.1\n"), "2.0");
    EXPECT_EQ(pinned_by("pyproject.toml", "dependencies = [\"numpy\", \"torch==2.2.*\"]\n"), "2.2");
}

TEST_F(PinnedVersion, AReadmeThatInstallsAVersionIsRead) {
    EXPECT_EQ(pinned_by("README.md", "```\npip install torch==2.1.0 torchvision==0.16.0 # CUDA 12\n```\n"),
              "2.1");
    EXPECT_EQ(pinned_by("README.md", "    conda install pytorch=1.13.1 pytorch-cuda=11.7 -c pytorch\n"),
              "1.13");
    for (const char* text :
         {"Tested with torch==2.1.0\n", "pip install torch\n", "pip install 'torch>=2.0'\n",
          "pip install torch==2.1.0\nor pip install torch==2.4.0\n"})
        EXPECT_EQ(pinned_by("README.md", text), "") << text;
    EXPECT_EQ(pinned_by("INSTALL.md", "pip install torch==2.1.0\n"), "");
}

TEST_F(PinnedVersion, WhatAllowsOthersSaysNothing) {
    for (const char* line : {"torch>=2.0", "torch", "torch~=2.0", "# torch==2.0", "torchvision==0.15",
                             "pytorch-lightning==1.9", "torch-scatter==2.1", "torch.version == 2.0"})
        EXPECT_EQ(pinned_by("requirements.txt", line), "") << line;
    EXPECT_EQ(pinned_by("environment.yml", "  - pytorch-cuda=11.8\n"), "");
    EXPECT_EQ(pinned_by("pyproject.toml", "torch = \"2.2.0\"\n"), "") << "2.2.0 and newer";
    EXPECT_EQ(pinned_by("notes.txt", "torch==2.0"), "");
    EXPECT_FALSE(pinned_version(path("absent"), "torch").known());
}

TEST_F(PinnedVersion, WhatIsNoListOfRequirementsIsLeft) {
    EXPECT_EQ(pinned_by("requirements.txt", std::string(500'000, 'x') + " torch==2.0"), "2.0")
        << "a long line";
    EXPECT_EQ(pinned_by("requirements.txt", std::string(2 << 20, '\n') + "torch==2.0"), "") << "too large";
    ASSERT_EQ(::mkfifo(path("requirements.txt").c_str(), 0600), 0);
    EXPECT_EQ(pinned(), "") << "nobody writes to it";
}

TEST_F(PinnedVersion, OtherPackagesHaveVersionsToo) {
    write("requirements.txt", "torch==2.0.1\ntransformers==4.43.3\nsentence-transformers==2.2\n");
    EXPECT_EQ(pinned_version(path(), "transformers"), (TorchVersion{4, 43}));
    EXPECT_EQ(pinned(), "2.0");
    EXPECT_FALSE(pinned_version(path(), "peft").known());
}

TEST_F(PinnedVersion, FilesThatDifferSayNothing) {
    write("requirements.txt", "torch==2.0.1\n");
    EXPECT_EQ(pinned_by("requirements-cuda.txt", "torch==2.0.0\n"), "2.0");
    EXPECT_EQ(pinned_by("requirements-cuda.txt", "torch==2.4.0\n"), "");
}

}  // namespace
}  // namespace mp::lint
