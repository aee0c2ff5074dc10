#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/base/result.hpp"

namespace mp {

std::uint64_t hash_bytes(std::string_view);  // XXH3-64

// The whole of a regular file. False when it cannot be read or is larger than `limit` bytes; never waits for the
// writer of a FIFO.
bool read_file(const std::string& path, std::string& into, std::uint64_t limit = std::uint64_t{1} << 32);

// The same for a file that the user names. The Error is a reason without the path: "not a readable file",
// "larger than " + `limit_text`, "cannot be read".
Result<std::string> read_named_file(const std::string& path, std::uint64_t limit,
                                    std::string_view limit_text);

// Writes all of `content`, again after EINTR. False: errno says why. A full disk is not a success.
bool write_all(int fd, std::string_view content);

// How replace_file() and OutputFile make the new file.
struct NewFile {
    std::optional<mode_t> mode{};  // exactly this; without it 0644 less the umask
    bool sync = false;             // on the disk before it takes the name
};

// Gives `path` this content. Readers see the old or the new file, never a part: the content is written to a new
// file ".new-*" in the same directory, which is then renamed. False: errno says why, and the old file is as it was.
bool replace_file(const std::string& path, std::string_view content, const NewFile& = {});

// The same in two steps, so that an unwritable place is known before the work and not after it. A device or a
// pipe is written to directly. Errors are reasons without the path.
class OutputFile {
public:
    static Result<OutputFile> open(std::string path, const NewFile& = {});
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Status commit(std::string_view content);

private:
    OutputFile() = default;
    bool open_new();
    bool finish(std::string_view content);

    std::string path_;
    std::string temporary_;  // empty: `path_` itself is written to
    NewFile how_;
    int fd_ = -1;

    friend bool replace_file(const std::string&, std::string_view, const NewFile&);
};

}  // namespace mp
