#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/trace/decode.hpp"

namespace mp::trace {

// Maps names to numbers, so that folding does not compare or hash texts.
class Interner {
public:
    Interner() = default;
    Interner(const Interner&) = delete;  // the keys refer to the texts
    Interner& operator=(const Interner&) = delete;
    Interner(Interner&&) noexcept = default;
    Interner& operator=(Interner&&) noexcept = default;

    std::uint32_t id(std::string_view name) {
        if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
        const std::string& kept = names_.emplace_back(name);
        return ids_.emplace(kept, static_cast<std::uint32_t>(names_.size() - 1)).first->second;
    }
    const std::string& text(std::uint32_t id) const { return names_[id]; }

    // Call begin() before each recording. The id() below maps the names of that recording.
    void begin() {
        if (!local_.empty()) before_.swap(local_);
        local_.clear();
    }
    std::uint32_t id(const NameRef& name, const NameList& names) {
        if (name.reference == 0) return id(name.text);
        if (name.reference == 1) return id(std::string_view());
        const std::size_t at = static_cast<std::size_t>(name.reference - 2);
        if (!names.find(at)) return id(text_of(name, names));
        if (at >= local_.size()) local_.resize(at + 1);
        if (local_[at] == 0) local_[at] = as_before(at, *names.find(at)) + 1;
        return local_[at] - 1;
    }

private:
    // Most recordings of a run give the same name the same number, so the previous recording's id is tried first.
    std::uint32_t as_before(std::size_t at, const std::string& name) {
        if (at < before_.size() && before_[at] != 0 && names_[before_[at] - 1] == name)
            return before_[at] - 1;
        return id(std::string_view(name));
    }

    std::deque<std::string> names_;
    std::unordered_map<std::string_view, std::uint32_t> ids_;
    std::vector<std::uint32_t> local_;   // by index in the recording: id + 1, or 0
    std::vector<std::uint32_t> before_;  // the same for the recording before
};

}  // namespace mp::trace
