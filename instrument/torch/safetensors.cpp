#include "instrument/torch/safetensors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mp::twin {
namespace {

std::string json_string(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (byte < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", byte);
            quoted += escape;
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

std::string header_of(const std::vector<NamedTensor>& tensors) {
    std::string header = "{";
    std::size_t offset = 0;
    for (const NamedTensor& n : tensors) {
        const std::size_t end = offset + n.tensor.nbytes();
        std::string shape;
        for (const std::int64_t size : n.tensor.sizes())
            shape += (shape.empty() ? "" : ",") + std::to_string(size);
        header += (offset || header.size() > 1 ? "," : "") + json_string(n.name) + ":{\"dtype\":\"" +
                  (n.tensor.scalar_type() == at::kDouble ? "F64" : "F32") + "\",\"shape\":[" + shape +
                  "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(end) + "]}";
        offset = end;
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return header;
}

// Not OutputFile of kernels/base/files: that takes one text, and this file may have gigabytes of tensors. The adapter
// has the std::string of its torch, and links no library of ours that is compiled with another.
bool write_all(int fd, const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
        const ssize_t done = ::write(fd, at, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

}  // namespace

std::string write_safetensors(const std::string& path, std::vector<NamedTensor> tensors) {
    // fp64 first, so that every value is aligned to its size.
    std::stable_sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
        return a.tensor.element_size() > b.tensor.element_size();
    });
    const std::string partial = path + ".partial";
    const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return partial + ": " + std::strerror(errno);
    const std::string header = header_of(tensors);
    const std::uint64_t length = header.size();
    bool good = write_all(fd, &length, sizeof length) && write_all(fd, header.data(), header.size());
    for (const NamedTensor& n : tensors) good = good && write_all(fd, n.tensor.data_ptr(), n.tensor.nbytes());
    const int error = good ? 0 : errno;
    if (::close(fd) != 0) good = false;
    if (good && ::rename(partial.c_str(), path.c_str()) == 0) return "";
    ::unlink(partial.c_str());
    return path + ": " + std::strerror(error ? error : errno);
}

}  // namespace mp::twin
