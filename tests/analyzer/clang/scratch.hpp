#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace mp::lint {

// A temporary directory for one test.
class Scratch {
public:
    Scratch() {
        std::string name = (std::filesystem::temp_directory_path() / "mp-clang-XXXXXX").string();
        if (mkdtemp(name.data())) path_ = std::filesystem::canonical(name).string();
    }
    ~Scratch() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    const std::string& path() const { return path_; }

    std::string write(const std::string& name, const std::string& text) const {
        const std::filesystem::path file = path_ + "/" + name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
        return file.string();
    }

private:
    std::string path_;
};

}  // namespace mp::lint
