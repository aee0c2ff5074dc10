#include "analyzer/clang/guarded_files.hpp"

#include <functional>
#include <system_error>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace vfs = llvm::vfs;

namespace mp::lint {
namespace {

std::int64_t nanoseconds(llvm::sys::TimePoint<> time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Prefixes of the names of a toolkit's headers and header directories.
// clang-format off: a table
constexpr llvm::StringLiteral kCudaNames[] = {
    "builtin_types", "cccl/", "channel_descriptor", "common_functions", "cooperative_groups", "crt/", "cub/",
    "cublas", "cuda", "cudnn", "cufft", "cupti", "curand", "cusolver", "cusparse", "device_", "driver_",
    "fatbinary", "host_config", "host_defines", "library_types", "math_constants", "math_functions", "mma.h",
    "nccl", "npp", "nv", "sm_", "surface_", "texture_", "thrust/", "vector_functions", "vector_types"};
// clang-format on
constexpr llvm::StringLiteral kTorchNames[] = {"ATen/", "c10/", "caffe2/", "torch/"};

llvm::ArrayRef<llvm::StringLiteral> names_of(GuardedFiles::Headers headers) {
    if (headers == GuardedFiles::Headers::cuda) return kCudaNames;
    return kTorchNames;
}

// Hashes the bytes that are parsed, so that an edit during the parse cannot give the cache a wrong hash.
class NotedFile : public vfs::File {
public:
    using Note = std::function<void(const vfs::Status&, std::uint64_t hash)>;

    NotedFile(std::unique_ptr<vfs::File> file, Note note) : file_(std::move(file)), note_(std::move(note)) {}

    llvm::ErrorOr<vfs::Status> status() override { return file_->status(); }
    llvm::ErrorOr<std::string> getName() override { return file_->getName(); }
    std::error_code close() override { return file_->close(); }

    llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> getBuffer(const llvm::Twine& name, std::int64_t size,
                                                                 bool terminated, bool is_volatile) override {
        auto buffer = file_->getBuffer(name, size, terminated, is_volatile);
        const auto status = file_->status();
        if (buffer && status) {
            note_(*status, XXH3_64bits((*buffer)->getBufferStart(), (*buffer)->getBufferSize()));
        }
        return buffer;
    }

private:
    std::unique_ptr<vfs::File> file_;
    Note note_;
};

}  // namespace

GuardedFiles::GuardedFiles(const std::string& directory) : ProxyFileSystem(vfs::createPhysicalFileSystem()) {
    static_cast<void>(setCurrentWorkingDirectory(directory));  // if it does not exist, its files are missing
}

void GuardedFiles::hide(Headers headers) {
    for (const char* dir : {"/usr/local/include", "/usr/include"}) hide_in(headers, dir);
}

void GuardedFiles::hide_in(Headers headers, const std::string& directory) {
    hidden_.emplace_back(directory + "/", headers);
}

bool GuardedFiles::is_hidden(const llvm::Twine& path) const {
    if (hidden_.empty()) return false;
    llvm::SmallString<256> text;
    const llvm::StringRef whole = path.toStringRef(text);
    return llvm::any_of(hidden_, [&](const auto& hidden) {
        llvm::StringRef rest = whole;
        return rest.consume_front(hidden.first) &&
               llvm::any_of(names_of(hidden.second),
                            [&](llvm::StringRef name) { return rest.starts_with(name); });
    });
}

llvm::ErrorOr<vfs::Status> GuardedFiles::status(const llvm::Twine& path) {
    if (is_hidden(path)) return std::make_error_code(std::errc::no_such_file_or_directory);
    return getUnderlyingFS().status(path);
}

llvm::ErrorOr<std::unique_ptr<vfs::File>> GuardedFiles::openFileForRead(const llvm::Twine& path) {
    const auto status = this->status(path);
    if (!status) return status.getError();
    if (!status->isRegularFile()) return std::make_error_code(std::errc::no_such_file_or_directory);
    if (status->getSize() > kMaxSourceBytes) return std::make_error_code(std::errc::file_too_large);
    auto file = getUnderlyingFS().openFileForRead(path);
    if (!file) return file.getError();
    llvm::SmallString<256> name;
    path.toVector(name);
    static_cast<void>(getUnderlyingFS().makeAbsolute(name));
    auto note = [this, key = name.str().str()](const vfs::Status& read, std::uint64_t hash) {
        read_[key] = {.path = Symbol(key),
                      .size = read.getSize(),
                      .mtime_ns = nanoseconds(read.getLastModificationTime()),
                      .hash = hash};
    };
    return std::make_unique<NotedFile>(std::move(*file), std::move(note));
}

std::vector<Dependency> GuardedFiles::read_files() const {
    std::vector<Dependency> all;
    all.reserve(read_.size());
    for (const auto& [path, file] : read_) all.push_back(file);
    return all;
}

}  // namespace mp::lint
