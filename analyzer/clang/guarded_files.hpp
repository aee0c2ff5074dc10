#pragma once

// clang's only access to the disk: regular files up to a size limit. Records each file that is read.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/facts/model.hpp"
#include "llvm/Support/VirtualFileSystem.h"

namespace mp::lint {

inline constexpr std::uint64_t kMaxSourceBytes = 64u << 20;

class GuardedFiles : public llvm::vfs::ProxyFileSystem {
public:
    // Relative paths are relative to `directory`. The process's own directory does not change.
    explicit GuardedFiles(const std::string& directory);

    enum class Headers : std::uint8_t { cuda, torch };
    // Hides these headers in the system's directories from now on: a distribution's toolkit or libtorch in
    // /usr/include must not mix with our stubs.
    void hide(Headers);
    void hide_in(Headers, const std::string& directory);

    llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override;
    bool exists(const llvm::Twine& path) override { return static_cast<bool>(status(path)); }
    // Treats a pipe or a device as a missing file: opening it could block, reading it could never end.
    llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override;

    // The files read so far, sorted by path, each once.
    std::vector<Dependency> read_files() const;

private:
    bool is_hidden(const llvm::Twine& path) const;

    std::vector<std::pair<std::string, Headers>> hidden_;  // each directory ends in '/'
    std::map<std::string, Dependency> read_;
};

}  // namespace mp::lint
