#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

// Reading files without mapping them: truncating a mapped file would raise SIGBUS. A header only, because the part of
// runtime/trace that is linked into traced programs reads a file too.

namespace mp {

// The number of bytes read; fewer than `size` at the end of the file, or where reading fails.
inline std::size_t read_at(int fd, std::uint64_t offset, void* into, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got =
            ::pread(fd, static_cast<char*>(into) + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

// A file that is open for reading. Opening a FIFO does not wait for a writer.
class InputFile {
public:
    explicit InputFile(const std::string& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ~InputFile() {
        if (fd_ >= 0) ::close(fd_);
    }
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    bool is_open() const { return fd_ >= 0; }
    int get() const { return fd_; }

private:
    int fd_;
};

// At most `most` bytes from the start of a file; empty when it cannot be read.
inline std::string start_of_file(const std::string& path, std::size_t most) {
    const InputFile file(path);
    std::string text(file.is_open() ? most : 0, '\0');
    text.resize(read_at(file.get(), 0, text.data(), text.size()));
    return text;
}

}  // namespace mp
