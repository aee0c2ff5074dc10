#include "analyzer/cache/store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "analyzer/cache/directory.hpp"
#include "kernels/base/parallel.hpp"

namespace mp::lint {
namespace {

// A store is rewritten when this many of its records are superseded, and more than are not.
// Keys of other flags are not superseded: the limit on its size drops them.
constexpr std::size_t kWorthRewriting = 512;
constexpr std::size_t kLargestStore = std::size_t{1} << 30;

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

void write_record(SegmentWriter& out, const StoredHead& head, const Unit& unit) {
    out.text(head.key);
    out.value(head);
    out.unit(unit);
    out.end_record();
}

StoredHead read_head(RecordReader& in) {
    StoredHead head;
    in.value(head.key);
    in.value(head);
    head.facts = in.digest();
    return head;
}

void FactStore::open() {
    if (!std::exchange(opened_, true)) map();
    for (; indexed_ < saved_.size(); ++indexed_) index(saved_[indexed_]);
}

void FactStore::map() {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    struct ::stat info{};
    // Under the lock, so that a segment that another run is writing is read completely or not at all.
    if (::flock(fd, LOCK_SH) == 0 && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        length_ = static_cast<std::size_t>(info.st_size);
        void* mapped = ::mmap(nullptr, length_, PROT_READ, MAP_PRIVATE, fd, 0);
        if (mapped != MAP_FAILED) mapping_ = mapped;
    }
    ::flock(fd, LOCK_UN);  // close() does not unlock it: the mapping still refers to the open file
    ::close(fd);
    if (!mapping_) return;
    index({static_cast<const char*>(mapping_), length_});
    mark_used(path_);
}

FactStore::~FactStore() {
    if (mapping_) ::munmap(mapping_, length_);
}

void FactStore::read_heads(Indexed& in_file, std::string_view bytes) {
    Segment& segment = *in_file.segment;
    in_file.intact = segment.open(bytes);
    for (std::size_t i = 0; in_file.intact && i < segment.records(); ++i) {
        RecordReader in(segment, segment.record(i));
        const std::string_view key = RecordReader(segment, segment.record(i)).text();
        StoredHead head = read_head(in);
        if (in.ok)
            in_file.records.emplace_back(
                key, Record{.head = std::move(head), .segment = &segment, .unit = in.rest()});
    }
}

void FactStore::index(std::string_view rest) {
    std::vector<Indexed> indexed;
    std::vector<std::string_view> bytes;
    for (std::size_t size = 0; (size = Segment::size_of(rest)) > 0; rest.remove_prefix(size)) {
        bytes.push_back(rest.substr(0, size));
        indexed.push_back({.segment = &segments_.emplace_back()});
    }
    in_parallel(indexed.size(), threads_, [&](std::size_t i) { read_heads(indexed[i], bytes[i]); });
    damaged_ = damaged_ || !rest.empty();
    for (Indexed& segment : indexed) {
        if (!segment.intact) {
            damaged_ = true;  // a run was killed during a write; the data before it is intact
            return;
        }
        for (auto& [key, record] : segment.records) {
            ++all_records_;
            const auto [at, is_new] = records_.insert_or_assign(key, std::move(record));
            if (is_new) order_.push_back(&at->second);
        }
    }
}

const StoredHead* FactStore::find(std::string_view key) {
    open();
    const auto found = records_.find(key);
    return found == records_.end() ? nullptr : &found->second.head;
}

Unit FactStore::read_shell(std::string_view key) {
    const auto found = records_.find(key);
    if (found == records_.end()) return {};
    RecordReader in(*found->second.segment, found->second.unit);
    return in.shell(found->second.head.facts.lines);
}

Unit FactStore::read(std::string_view key) {
    const auto found = records_.find(key);
    if (found == records_.end()) return {};
    Record& record = found->second;
    return record.ahead ? *std::exchange(record.ahead, std::nullopt) : read(record);
}

Unit FactStore::read(const Record& record) {
    RecordReader in(*record.segment, record.unit);
    return in.unit(record.head.facts.lines);
}

bool FactStore::read_ahead() {
    open();
    for (; ahead_ < order_.size(); ++ahead_) {
        Record& record = *order_[ahead_];
        if (!record.head.is_seed || !record.head.has_facts || record.ahead) continue;
        record.ahead = read(record);
        return true;
    }
    return false;
}

bool FactStore::save() {
    if (added_.empty()) return true;
    open();
    const std::size_t stale = all_records_ - records_.size();
    const bool rewritten =
        damaged_ || length_ > kLargestStore || (stale > kWorthRewriting && stale > records_.size());
    const bool saved = rewritten ? rewrite() : append();
    std::move(added_.begin(), added_.end(), std::back_inserter(saved_));
    added_.clear();
    return saved;
}

bool FactStore::append() {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return false;
    const bool saved = ::flock(fd, LOCK_EX) == 0 && write_all_or_nothing(fd, added_);
    const int why = errno;
    ::close(fd);
    errno = why;
    return saved;
}

// Keeps the last record of every file that still exists, and the added records. A store that is too large
// keeps only the added records.
bool FactStore::rewrite() {
    SegmentWriter out;
    for (const auto& [key, record] : records_) {
        const std::string path(key.substr(0, key.find('\0')));
        if (length_ > kLargestStore || ::access(path.c_str(), F_OK) != 0) continue;
        write_record(out, record.head, read(key));
    }
    std::string bytes = out.take();
    for (const std::string& segment : added_) bytes += segment;
    return replace_file(path_, bytes);
}

}  // namespace mp::lint
