#include "analyzer/cache/pack.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace mp::lint {
namespace {

// A pack is rewritten when this many records of it are out of date, and more than are not.
constexpr std::size_t kWorthRewriting = 512;

bool write_all_or_nothing(int fd, const std::vector<std::string>& parts) {
    struct ::stat before{};
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

void FactsPack::open() {
    if (!std::exchange(opened_, true)) map();
    for (; indexed_ < saved_.size(); ++indexed_) index(saved_[indexed_]);
}

void FactsPack::map() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    struct ::stat info{};
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        length_ = static_cast<std::size_t>(info.st_size);
        void* mapped = ::mmap(nullptr, length_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped != MAP_FAILED) mapping_ = mapped;
    }
    ::close(fd);
    if (mapping_) index({static_cast<const char*>(mapping_), length_});
}

FactsPack::~FactsPack() {
    if (mapping_) ::munmap(mapping_, length_);
}

void FactsPack::index(std::string_view rest) {
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
            const auto [at, is_new] = records_.insert_or_assign(
                file.path, Record{.file = file, .segment = segments_.size() - 1, .facts = in.rest()});
            if (is_new) order_.push_back(&at->second);
        }
    }
}

const PackedFile* FactsPack::find(std::string_view path) {
    open();
    const auto found = records_.find(path);
    return found == records_.end() ? nullptr : &found->second.file;
}

Unit FactsPack::read(std::string_view path) {
    const auto found = records_.find(path);
    if (found == records_.end()) return {};
    Record& record = found->second;
    return record.ahead ? *std::exchange(record.ahead, std::nullopt) : read(record);
}

Unit FactsPack::read(const Record& record) {
    RecordReader in(segments_[record.segment], record.facts);
    return read_unit(in);
}

bool FactsPack::read_ahead() {
    open();
    for (; ahead_ < order_.size(); ++ahead_) {
        Record& record = *order_[ahead_];
        if (!record.file.wanted || !record.file.has_facts || record.ahead) continue;
        record.ahead = read(record);
        return true;
    }
    return false;
}

bool FactsPack::save() {
    if (added_.empty()) return true;
    open();
    const std::size_t stale = all_records_ - records_.size();
    const bool rewritten = damaged_ || (stale > kWorthRewriting && stale > records_.size());
    const bool saved = rewritten ? rewrite() : append();
    std::move(added_.begin(), added_.end(), std::back_inserter(saved_));
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
    return replace_file(path_, bytes);
}

}  // namespace mp::lint
