#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace mp::launch {

// A temporary directory for each test.
class TemporaryDirectory : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "mp-launch-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        root_ = std::filesystem::canonical(name).string();
    }
    void TearDown() override {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }

    std::string path(const std::string& name = "") const { return name.empty() ? root_ : root_ + "/" + name; }

    std::string write(const std::string& name, const std::string& text, unsigned mode = 0644) const {
        std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << text;
        ::chmod(path(name).c_str(), mode);
        return path(name);
    }
    static std::string content_of(const std::string& file) {
        std::ifstream in(file, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

private:
    std::string root_;
};

}  // namespace mp::launch
