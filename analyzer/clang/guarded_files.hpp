#pragma once

// The only way clang reaches the disk: regular files of a sane size, each one read noted down.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "llvm/Support/VirtualFileSystem.h"

namespace mp::lint {

inline constexpr std::uint64_t kMaxSourceBytes = 64u << 20;

class GuardedFiles : public llvm::vfs::ProxyFileSystem {
public:
    // Relative paths are relative to `directory`; the process's own directory stays as it is.
    explicit GuardedFiles(const std::string& directory);

    // From now on the CUDA headers in these directories are not there: a toolkit that a distribution
    // spread over /usr/include must not mix with our stubs.
    void hide_cuda_headers(const std::vector<std::string>& dirs);

    llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override;
    bool exists(const llvm::Twine& path) override { return static_cast<bool>(status(path)); }
    // A pipe or a device looks like a missing file: opening it could hang or never end.
    llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override;

    // What was read until now, sorted by path, each file once.
    std::vector<Dependency> read_files() const;

private:
    bool is_hidden(const llvm::Twine& path) const;

    std::vector<std::string> hidden_;  // each ends in '/'
    std::map<std::string, Dependency> read_;
};

}  // namespace mp::lint
