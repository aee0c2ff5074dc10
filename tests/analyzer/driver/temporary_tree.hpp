#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace mp::lint {

// A fresh directory per test, removed with it.
class TemporaryTree : public testing::Test {
protected:
    void SetUp() override {
        root_ = std::filesystem::temp_directory_path() / ("mp-driver-" + std::to_string(::getpid()));
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    void TearDown() override { std::filesystem::remove_all(root_); }

    void write(const std::string& name, const std::string& text = "") const {
        std::filesystem::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
    }
    std::string path(const std::string& name = "") const {
        return name.empty() ? root_.string() : (root_ / name).string();
    }

    std::filesystem::path root_;
};

}  // namespace mp::lint
