#include "analyzer/cache/pack.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "kernels/numerics/parallel.hpp"

namespace mp::lint {
namespace {

// A pack is rewritten when this many records of it are out of date, and more than are not.
constexpr std::size_t kWorthRewriting = 512;

// Fewer are read before a thread has started.
constexpr std::size_t kFilesWorthAThread = 8;

bool write_all_or_nothing(int fd, const std::vector<std::string>& parts) {
    struct ::stat before {};
    if (::fstat(fd, &before) != 0) return false;
    for (const std::string& part : parts) {
        for (std::size_t done = 0; done < part.size();) {
            const ssize_t put = ::write(fd, part.data() + done, part.size() - done);
            if (put < 0 && errno == EINTR) continue;
            if (put <= 0) {
                const int why = errno;
                if (::ftruncate(fd, before.st_size) != 0) errno = why;
                errno = why;
                return false;
            }
            done += static_cast<std::size_t>(put);
        }
    }
    return true;
}

}  // namespace

void write_record(SegmentWriter& out, const PackedFile& file, const Unit& unit) {
    out.text(file.path);
    out.text(file.module);
    out.number(file.id.size);
    out.value(file.id.mtime_ns);
    out.number(file.id.inode);
    out.number(file.hash);
    out.value(file.may_suppress);
    out.value(file.has_facts);
    out.value(file.relevant);
    out.value(file.wanted);
    out.value(file.imports);
    out.number(file.mentions.size());
    for (const std::string_view name : file.mentions) out.text(name);
    write_unit(out, unit);
    out.end_record();
}

PackedFile read_head(RecordReader& in) {
    PackedFile file;
    file.path = in.text();
    file.module = in.text();
    file.id.size = in.number();
    in.value(file.id.mtime_ns);
    file.id.inode = in.number();
    file.hash = in.number();
    in.value(file.may_suppress);
    in.value(file.has_facts);
    in.value(file.relevant);
    in.value(file.wanted);
    in.value(file.imports);
    for (std::uint64_t n = in.number(); n > 0 && in.ok; --n) file.mentions.push_back(in.text());
    return file;
}

FactsPack::FactsPack(std::string directory, std::string path)
    : directory_(std::move(directory)), path_(std::move(path)) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    struct ::stat info {};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        length_ = static_cast<std::size_t>(info.st_size);
        void* mapped = ::mmap(nullptr, length_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped != MAP_FAILED) mapping_ = mapped;
    }
    ::close(fd);
    if (mapping_) index();
}

FactsPack::~FactsPack() {
    if (mapping_) ::munmap(mapping_, length_);
}

void FactsPack::index() {
    std::string_view rest(static_cast<const char*>(mapping_), length_);
    while (!rest.empty()) {
        Segment segment;
        if (!segment.open(rest)) {
            damaged_ = true;  // a run was killed while it wrote: what precedes is whole
            return;
        }
        rest.remove_prefix(segment.size());
        segments_.push_back(std::move(segment));
        Segment& kept = segments_.back();
        for (std::size_t i = 0; i < kept.records(); ++i) {
            RecordReader in(kept, kept.record(i));
            const PackedFile file = read_head(in);
            if (!in.ok) continue;
            ++all_records_;
            records_.insert_or_assign(
                file.path,
                Record{.file = file, .segment = segments_.size() - 1, .facts = in.rest()});
        }
    }
}

const PackedFile* FactsPack::find(std::string_view path) const {
    const auto found = records_.find(path);
    return found == records_.end() ? nullptr : &found->second.file;
}

Unit FactsPack::read(std::string_view path) {
    const auto found = records_.find(path);
    if (found == records_.end()) return {};
    RecordReader in(segments_[found->second.segment], found->second.facts);
    return read_unit(in);
}

std::vector<Unit> FactsPack::read(const std::vector<std::string_view>& paths, int threads) {
    std::vector<Unit> units(paths.size());
    const auto most = static_cast<int>(paths.size() / kFilesWorthAThread);
    in_parallel(paths.size(), std::min(threads, most),
                [&](std::size_t i) { units[i] = read(paths[i]); });
    return units;
}

bool FactsPack::save() {
    if (added_.empty()) return true;
    const std::size_t stale = all_records_ - records_.size();
    const bool rewritten = damaged_ || (stale > kWorthRewriting && stale > records_.size());
    const bool saved = rewritten ? rewrite() : append();
    added_.clear();
    return saved;
}

bool FactsPack::append() {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return false;
    const bool saved = ::flock(fd, LOCK_EX) == 0 && write_all_or_nothing(fd, added_);
    const int why = errno;
    ::close(fd);
    errno = why;
    return saved;
}

// What is still true of the files that are still there, and what was added.
bool FactsPack::rewrite() {
    SegmentWriter out;
    for (const auto& [path, record] : records_) {
        if (::access(std::string(path).c_str(), F_OK) != 0) continue;
        write_record(out, record.file, read(path));
    }
    std::string bytes = out.take();
    for (const std::string& segment : added_) bytes += segment;
    return replace_file(directory_, path_, bytes);
}

}  // namespace mp::lint
