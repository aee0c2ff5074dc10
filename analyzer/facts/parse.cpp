#include <charconv>
#include <concepts>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "analyzer/facts/fields.hpp"
#include "analyzer/facts/names.hpp"
#include "analyzer/facts/syntax.hpp"
#include "analyzer/facts/text.hpp"

namespace mp::lint {
namespace {

// Interning takes a lock and a full hash. The same few thousand strings come again and again, so a
// small direct-mapped table in front of it answers most requests. Keys point into the text being
// parsed.
class SymbolCache {
public:
    Symbol get(std::string_view text) {
        Slot& slot = slots_[hash(text) % kSlots];
        if (slot.text != text) slot = {text, Symbol(text)};
        return slot.symbol;
    }
    // For a text that does not outlive the call.
    static Symbol once(std::string_view text) { return Symbol(text); }

private:
    struct Slot {
        std::string_view text;
        Symbol symbol;
    };
    static constexpr std::size_t kSlots = 4096;

    // Hashes length, head and tail only. Names that differ only in the middle share a slot, which
    // costs time but not correctness.
    static std::size_t hash(std::string_view text) {
        std::uint64_t head = 0, tail = 0;
        const std::size_t n = text.size() < 8 ? text.size() : 8;
        std::memcpy(&head, text.data(), n);
        std::memcpy(&tail, text.data() + text.size() - n, n);
        const std::uint64_t mixed = (head ^ (tail * 0x9e3779b97f4a7c15u) ^ text.size()) * 0xff51afd7ed558ccdu;
        return static_cast<std::size_t>(mixed >> 32);
    }

    std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

const std::unordered_map<std::string_view, DType>& dtype_names() {
    static const auto* const names = [] {
        auto* map = new std::unordered_map<std::string_view, DType>;
        for (int d = 0; d <= static_cast<int>(kLastDType); ++d)
            map->emplace(name_of(static_cast<DType>(d)), static_cast<DType>(d));
        return map;
    }();
    return *names;
}

std::optional<DType> read_dtype(std::string_view word) {
    const auto found = dtype_names().find(word);
    if (found != dtype_names().end()) return found->second;
    return dtype_from_name(word);  // people also write half and float
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

// Reads the fields of one line. The field list is walked in order, so a line written by the printer
// needs one pass; a line with its keys in another order needs more.
class Reader {
public:
    explicit Reader(SymbolCache& symbols) : symbols_(symbols) {}

    // The file of positions that name no file.
    void set_file(Symbol file) { file_ = file; }

    const std::string& error() const { return error_; }

    template <class F>
    bool line(std::string_view text, F& fact) {
        at_ = text.data();
        end_ = text.data() + text.size();
        prefix_ = {};
        error_.clear();
        read_fields(fact, Close::line);
        return error_.empty();
    }

    void place(SourceSpan& span) {
        if (!word_pending() || !prefix_.empty()) return;
        const char* const start = at_;
        if (!read_place(span)) {
            at_ = start;
            return;
        }
        advance();
    }

    void title(Symbol& text) {
        if (!word_pending() || !prefix_.empty() || titled_) return;
        titled_ = true;
        read(text);
        advance();
    }

    void dtypes(DType& from, DType& to) {
        if (!word_pending()) return;
        const std::string_view word = peek_word();
        const std::size_t arrow = word.find("->");
        if (arrow == std::string_view::npos) return;
        const auto left = read_dtype(word.substr(0, arrow)), right = read_dtype(word.substr(arrow + 2));
        if (!left || !right) return fail("a pair of dtypes like fp32->fp16");
        from = *left;
        to = *right;
        at_ += word.size();
        advance();
    }

    template <class F>
    void bare(std::string_view key, F& field, const F& omitted) {
        if (prefix_.empty() && word_pending() && accept(field, peek_word())) {
            at_ += peek_word().size();
            advance();
            return;
        }
        (*this)(key, field, omitted);
    }

    template <class F>
    void operator()(std::string_view key, F& field, const F& = F{}) {
        if (pending_ == Pending::keyed && key_is(key)) {
            read(field);
            advance();
            return;
        }
        if constexpr (std::same_as<F, bool>) {
            if (!word_pending() || peek_word() != key) return;
            field = true;
            at_ += key.size();
            advance();
        }
    }

    void or_title(std::string_view key, Symbol& field, Symbol title) {
        if (first_pass_) field = title;
        (*this)(key, field);
    }

    void nested(std::string_view key, Operand& operand) {
        if (pending_ != Pending::keyed || !key_.starts_with(key)) return;
        prefix_ = key;
        fields(*this, operand);
        prefix_ = {};
    }

private:
    enum class Pending : std::uint8_t { nothing, word, keyed };
    enum class Close : std::uint8_t { line, brace, one_field };

    template <class F>
    void read_fields(F& fact, Close close) {
        close_ = close;
        first_pass_ = true;
        titled_ = false;
        taken_ = 0;
        advance();
        for (std::uint32_t before = 0; error_.empty(); before = taken_) {
            fields(*this, fact);
            first_pass_ = false;
            if (pending_ == Pending::nothing || taken_ == before) break;
        }
        if (!error_.empty() || pending_ == Pending::nothing) return;
        if (pending_ == Pending::keyed)
            fail_with("no field '" + std::string(key_) + "' here");
        else
            fail_with("unexpected '" + std::string(shown_word()) + "'");
    }

    // Finds the next field of the line.
    void advance() {
        ++taken_;
        if (!error_.empty() || (close_ == Close::one_field && taken_ > 1)) {
            pending_ = Pending::nothing;
            return;
        }
        skip_blanks();
        if (at_ == end_ || (*at_ == '}' && close_ == Close::brace)) {
            pending_ = Pending::nothing;
            return;
        }
        const char* p = at_;
        while (p != end_ && is_key(*p)) ++p;
        if (p != at_ && p != end_ && *p == '=') {
            key_ = {at_, p};
            at_ = p + 1;
            pending_ = Pending::keyed;
        } else {
            pending_ = Pending::word;
        }
    }

    bool word_pending() const { return pending_ == Pending::word; }

    bool key_is(std::string_view name) const {
        if (prefix_.empty()) return key_ == name;
        return key_.size() == prefix_.size() + 1 + name.size() && key_[prefix_.size()] == '.' &&
               key_.starts_with(prefix_) && key_.ends_with(name);
    }

    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
    }

    std::string_view peek_word() const {
        const char* p = at_;
        while (p != end_ && is_bare(*p)) ++p;
        return {at_, p};
    }
    std::string_view shown_word() const {
        const std::string_view word = peek_word();
        return word.empty() && at_ != end_ ? std::string_view(at_, 1) : word.substr(0, 60);
    }

    void fail(std::string_view expected) {
        std::string message = "expected " + std::string(expected);
        if (pending_ == Pending::keyed) message += " after '" + std::string(key_) + "='";
        const std::string_view found = shown_word();
        message += found.empty() ? ", found the end of the line" : ", found '" + std::string(found) + "'";
        fail_with(std::move(message));
    }
    void fail_with(std::string message) {
        if (error_.empty()) error_ = std::move(message);
        pending_ = Pending::nothing;
    }

    // Whether a bare word is a value of this type.
    static bool accept(DType& field, std::string_view word) {
        const auto dtype = read_dtype(word);
        if (dtype) field = *dtype;
        return dtype.has_value();
    }
    template <NamedEnum E>
    static bool accept(E& field, std::string_view word) {
        constexpr auto names = names_of(E{});
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (names[i] != word) continue;
            field = static_cast<E>(i);
            return true;
        }
        return false;
    }
    template <std::integral N>
    static bool accept(N& field, std::string_view word) {
        N number = 0;
        const char* const end = word.data() + word.size();
        const auto done = std::from_chars(word.data(), end, number);
        if (done.ec != std::errc{} || done.ptr != end) return false;
        field = number;
        return true;
    }

    template <class F>
    void read_word(F& field, std::string_view expected) {
        const std::string_view word = peek_word();
        if (!accept(field, word)) return fail(expected);
        at_ += word.size();
    }
    void read(DType& field) { read_word(field, "a dtype"); }
    template <std::integral N>
    void read(N& field) {
        read_word(field, std::is_signed_v<N> ? "a number" : "a number that is not negative");
    }
    template <NamedEnum E>
    void read(E& field) {
        const std::string_view word = peek_word();
        if (accept(field, word)) {
            at_ += word.size();
            return;
        }
        std::string expected = "one of";
        for (const std::string_view name : names_of(E{})) expected.append(" ").append(name);
        fail(expected);
    }

    void read(bool& field) {
        const std::string_view word = peek_word();
        if (word != "true" && word != "false") return fail("true or false");
        field = word == "true";
        at_ += word.size();
    }

    void read(Symbol& field) {
        if (at_ != end_ && *at_ == '"') return read_quoted(field);
        const std::string_view word = peek_word();
        if (word.empty()) return fail("a value");
        field = symbols_.get(word);
        at_ += word.size();
    }

    void read(Op& field) {
        Symbol name;
        read(name);
        field = Op(name.str());
    }

    void read(SourceSpan& field) {
        if (!read_place(field)) fail("a position like 12:7 or file:12:7-15");
    }

    void read_quoted(Symbol& field) {
        const char* const start = ++at_;
        while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
        if (at_ != end_ && *at_ == '"') {
            field = symbols_.get({start, at_++});
            return;
        }
        read_escaped(field, start);
    }

    void read_escaped(Symbol& field, const char* start) {
        std::string text(start, at_);
        while (at_ != end_ && *at_ != '"') {
            if (*at_ != '\\')
                text += *at_++;
            else if (!read_escape(text))
                return;
        }
        if (at_ == end_) return fail("a closing quote");
        ++at_;
        field = SymbolCache::once(text);
    }

    bool read_escape(std::string& text) {
        const char kind = end_ - at_ >= 2 ? at_[1] : '\0';
        const int high = kind == 'x' && end_ - at_ >= 4 ? hex_digit(at_[2]) : -1;
        const int low = high >= 0 ? hex_digit(at_[3]) : -1;
        if (kind == '"' || kind == '\\') {
            text += kind;
        } else if (kind == 'n') {
            text += '\n';
        } else if (kind == 't') {
            text += '\t';
        } else if (low >= 0) {
            text += static_cast<char>(high * 16 + low);
            at_ += 2;
        } else {
            fail("one of \\\" \\\\ \\n \\t \\x00 to \\xff");
            return false;
        }
        at_ += 2;
        return true;
    }

    bool read_number(std::uint32_t& number) {
        const auto done = std::from_chars(at_, end_, number);
        if (done.ec != std::errc{}) return false;
        at_ = done.ptr;
        return true;
    }
    bool skip(char c) {
        if (at_ == end_ || *at_ != c) return false;
        ++at_;
        return true;
    }

    // Leaves `span` unchanged when the text is not a position.
    bool read_place(SourceSpan& span) {
        SourceSpan read_span{.file = file_};
        if (at_ != end_ && *at_ == '"') {
            read_quoted(read_span.file);
            if (!error_.empty() || !skip(':')) return false;
        } else if (const std::string_view word = peek_word(); !word.empty() && !is_digit(word[0])) {
            std::size_t colon = word.find(':');
            if (colon == std::string_view::npos || colon + 1 >= word.size() || !is_digit(word[colon + 1]))
                return false;
            read_span.file = symbols_.get(word.substr(0, colon));
            at_ += colon + 1;
        }
        if (!read_number(read_span.line) || !skip(':') || !read_number(read_span.column)) return false;
        if (skip('-')) {
            read_span.end_line = read_span.line;
            if (!read_number(read_span.end_column)) return false;
            if (skip(':')) {
                read_span.end_line = read_span.end_column;
                if (!read_number(read_span.end_column)) return false;
            }
        }
        if (at_ != end_ && is_bare(*at_)) return false;
        span = read_span;
        return true;
    }

    template <class F>
    void read(std::vector<F>& list) {
        if (!skip('[')) return fail("a list in brackets");
        list.clear();
        for (skip_blanks(); !skip(']'); skip_blanks()) {
            if (at_ == end_) return fail("a closing ]");
            read_item(list.emplace_back());
            if (!error_.empty()) return;
        }
    }
    void read_item(Symbol& item) { read(item); }
    template <class F>
    void read_item(F& item) {
        const auto saved = std::tuple(close_, first_pass_, titled_, taken_, key_);
        const bool braces = skip('{');
        read_fields(item, braces ? Close::brace : Close::one_field);
        if (braces && error_.empty() && !skip('}')) fail("a closing }");
        std::tie(close_, first_pass_, titled_, taken_, key_) = saved;
    }

    SymbolCache& symbols_;
    Symbol file_;
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    Pending pending_ = Pending::nothing;
    Close close_ = Close::line;
    bool first_pass_ = true;
    bool titled_ = false;      // the title of this fact has been read
    std::uint32_t taken_ = 0;  // fields of this fact consumed, plus one
    std::string_view key_;     // of the pending field
    std::string_view prefix_;  // "source" while its fields are read
    std::string error_;
};

bool in_range(std::int32_t index, std::size_t size) {
    return index == kNone || (index >= 0 && static_cast<std::size_t>(index) < size);
}

// Facts refer to each other by index. Code that reads facts does not check indices again, so every
// index must be in range.
bool operand_fits(const Operand& o, const Function& f) {
    return in_range(o.call, f.calls.size()) && in_range(o.param, f.params.size());
}

std::string_view misfit_of(const Function& f) {
    const std::size_t blocks = f.flow.empty() ? 1 : f.flow.size();
    for (const Block& b : f.flow)
        for (const Edge& e : b.to)
            if (e.to >= blocks) return "an edge to a block";
    for (const Call& c : f.calls) {
        if (c.block >= blocks) return "a call in a block";
        if (!operand_fits(c.result, f)) return "a result";
        for (const Operand& o : c.args)
            if (!operand_fits(o, f)) return "an argument";
    }
    for (const Cast& c : f.casts)
        if (!in_range(c.inner, f.casts.size()) || !operand_fits(c.source, f)) return "a cast";
    for (const Update& u : f.updates)
        if (!in_range(u.param, f.params.size())) return "an update";
    for (const Scaling& s : f.scalings)
        if (!in_range(s.param, f.params.size()) || !operand_fits(s.factor, f)) return "a scaling";
    for (const Accumulation& a : f.accumulations)
        if (!in_range(a.call, f.calls.size())) return "an accumulation";
    for (const Setting& s : f.settings)
        if (s.block >= blocks || !operand_fits(s.value, f)) return "a setting";
    for (const Definition& d : f.definitions)
        if (!operand_fits(d.value, f)) return "a definition";
    for (const Operand& o : f.returned)
        if (!operand_fits(o, f)) return "a returned value";
    return {};
}

class Parser {
public:
    Parser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

    Result<Unit> run() {
        while (!rest_.empty() && error_.empty()) next_line();
        if (error_.empty() && !seen_unit_) fail("expected a line that starts with 'unit'");
        end_function();
        if (!error_.empty()) return Error{error_, {}};
        return std::move(unit_);
    }

private:
    void next_line() {
        ++number_;
        const std::size_t length = rest_.find('\n');
        std::string_view line = rest_.substr(0, length);
        rest_.remove_prefix(length == std::string_view::npos ? rest_.size() : length + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        const std::size_t start = line.find_first_not_of(" \t");
        if (start == std::string_view::npos || line[start] == '#') return;
        line.remove_prefix(start);
        const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
        dispatch(line.substr(0, end), line.substr(end));
    }

    void dispatch(std::string_view keyword, std::string_view rest) {
        if (keyword == "facts") return check_version(rest);
        if (keyword == "unit") return begin_unit(rest);
        if (!seen_unit_) return fail("expected a line that starts with 'unit'");
        if (keyword == "func") return begin_function(rest);
        if (keyword == "coverage") return read(rest, unit_.coverage);
        if (keyword == "dependency") return read(rest, unit_.dependencies.emplace_back());
        if (function_fact(keyword, rest)) return;
        fail(
            "expected func, call, cast, accumulate, update, scaling, type, setting, define, block, return, "
            "coverage or dependency, found '" +
            std::string(keyword.substr(0, 60)) + "'");
    }

    bool function_fact(std::string_view keyword, std::string_view rest) {
        if (unit_.functions.empty()) return false;
        Function& f = unit_.functions.back();
        if (keyword == "call")
            read(rest, f.calls.emplace_back());
        else if (keyword == "cast")
            read(rest, f.casts.emplace_back());
        else if (keyword == "accumulate")
            read(rest, f.accumulations.emplace_back());
        else if (keyword == "update")
            read(rest, f.updates.emplace_back());
        else if (keyword == "scaling")
            read(rest, f.scalings.emplace_back());
        else if (keyword == "type")
            read(rest, f.types.emplace_back());
        else if (keyword == "setting")
            read(rest, f.settings.emplace_back());
        else if (keyword == "define")
            read(rest, f.definitions.emplace_back());
        else if (keyword == "block")
            read(rest, f.flow.emplace_back());
        else if (keyword == "return")
            read(rest, f.returned.emplace_back());
        else
            return false;
        return true;
    }

    void check_version(std::string_view rest) {
        const std::size_t start = rest.find_first_not_of(" \t");
        const std::string expected = std::to_string(kFactsVersion);
        if (start == std::string_view::npos || rest.substr(start) != expected)
            fail("expected version " + expected + " of the facts format");
    }

    void begin_unit(std::string_view rest) {
        if (std::exchange(seen_unit_, true)) return fail("expected one unit only, found a second");
        read(rest, unit_);
        reader_.set_file(unit_.path);
    }

    void begin_function(std::string_view rest) {
        end_function();
        reader_.set_file(unit_.path);
        Function& f = unit_.functions.emplace_back();
        read(rest, f);
        reader_.set_file(f.span.file);
        function_line_ = number_;
    }

    void end_function() {
        if (!error_.empty() || unit_.functions.empty()) return;
        const std::string_view misfit = misfit_of(unit_.functions.back());
        if (misfit.empty()) return;
        number_ = function_line_;
        fail(std::string(misfit) + " of this function has an index that nothing has");
    }

    template <class F>
    void read(std::string_view rest, F& fact) {
        if (!reader_.line(rest, fact)) fail(reader_.error());
    }

    void fail(const std::string& message) {
        if (!error_.empty()) return;
        const std::size_t line = number_ ? number_ : 1;
        error_ = std::string(name_) + ":" + std::to_string(line) + ": " + message;
    }

    std::string_view rest_;
    std::string_view name_;
    SymbolCache symbols_;
    Reader reader_{symbols_};
    Unit unit_;
    bool seen_unit_ = false;
    std::size_t number_ = 0;
    std::size_t function_line_ = 0;
    std::string error_;
};

}  // namespace

Result<Unit> parse_facts(std::string_view text, std::string_view name) { return Parser(text, name).run(); }

}  // namespace mp::lint
