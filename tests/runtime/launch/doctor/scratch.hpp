#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mp::launch::doctor {

// A directory of a test's own, and files in it.
class Scratch : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "mp-doctor.XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        directory_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    std::string file(const std::string& name, const std::string& text, bool executable = false) const {
        const std::filesystem::path path = std::filesystem::path(directory_) / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        if (executable) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
        return path;
    }
    // A program that runs a shell script.
    std::string program(const std::string& name, const std::string& script) const {
        return file(name, "#!/bin/sh\n" + script, true);
    }

    std::string directory_;
};

}  // namespace mp::launch::doctor
