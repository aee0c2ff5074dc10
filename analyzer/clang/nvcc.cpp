#include "analyzer/clang/nvcc.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string_view>

namespace mp::lint {
namespace {

using std::string_view;

enum class Kind {
    drop,        // a flag of another stage
    drop_value,  // ... with a value
    forward,     // `clang` takes the value in its next argument
    define,      // `clang` is the macro that has the same effect in source code
    host,        // options for the host compiler
    arch,
    numerics,       // recorded as clang=value
    numerics_flag,  // recorded as `clang`
    default_stream,
};

struct Option {
    string_view name;  // without dashes; nvcc takes one or two before any name
    Kind kind = Kind::drop;
    string_view clang;
};

// clang-format off: a table
constexpr auto kOptions = std::to_array<Option>({
    {"include-path", Kind::forward, "-I"},
    {"system-include", Kind::forward, "-isystem"},
    {"isystem", Kind::forward, "-isystem"},
    {"define-macro", Kind::forward, "-D"},
    {"undefine-macro", Kind::forward, "-U"},
    {"pre-include", Kind::forward, "-include"},
    {"include", Kind::forward, "-include"},
    {"x", Kind::forward, "-x"},
    {"std", Kind::forward, "-std"},
    {"machine", Kind::drop_value, ""},
    {"m", Kind::drop_value, ""},
    {"compiler-options", Kind::host, ""},
    {"Xcompiler", Kind::host, ""},
    {"gpu-architecture", Kind::arch, ""},
    {"arch", Kind::arch, ""},
    {"gpu-code", Kind::arch, ""},
    {"code", Kind::arch, ""},
    {"generate-code", Kind::arch, ""},
    {"gencode", Kind::arch, ""},
    {"use_fast_math", Kind::numerics_flag, "--use_fast_math"},
    {"ftz", Kind::numerics, "-ftz"},
    {"prec-div", Kind::numerics, "-prec-div"},
    {"prec-sqrt", Kind::numerics, "-prec-sqrt"},
    {"fmad", Kind::numerics, "-fmad"},
    {"extended-lambda", Kind::define, "__CUDACC_EXTENDED_LAMBDA__"},
    {"expt-extended-lambda", Kind::define, "__CUDACC_EXTENDED_LAMBDA__"},
    {"expt-relaxed-constexpr", Kind::define, "__CUDACC_RELAXED_CONSTEXPR__"},
    {"device-c", Kind::define, "__CUDACC_RDC__"},
    {"dc", Kind::define, "__CUDACC_RDC__"},
    {"default-stream", Kind::default_stream, ""},

    {"relocatable-device-code", Kind::drop_value, ""}, {"rdc", Kind::drop_value, ""},
    {"output-file", Kind::drop_value, ""}, {"o", Kind::drop_value, ""},
    {"output-directory", Kind::drop_value, ""}, {"odir", Kind::drop_value, ""},
    {"dependency-output", Kind::drop_value, ""}, {"MF", Kind::drop_value, ""},
    {"dependency-target-name", Kind::drop_value, ""}, {"MT", Kind::drop_value, ""}, {"MQ", Kind::drop_value, ""},
    {"compiler-bindir", Kind::drop_value, ""}, {"ccbin", Kind::drop_value, ""},
    {"archiver-binary", Kind::drop_value, ""}, {"arbin", Kind::drop_value, ""},
    {"libdevice-directory", Kind::drop_value, ""}, {"ldir", Kind::drop_value, ""},
    {"target-directory", Kind::drop_value, ""}, {"tdir", Kind::drop_value, ""},
    {"ptxas-options", Kind::drop_value, ""}, {"Xptxas", Kind::drop_value, ""},
    {"nvlink-options", Kind::drop_value, ""}, {"Xnvlink", Kind::drop_value, ""},
    {"linker-options", Kind::drop_value, ""}, {"Xlinker", Kind::drop_value, ""},
    {"archive-options", Kind::drop_value, ""}, {"Xarchive", Kind::drop_value, ""},
    {"Xfatbin", Kind::drop_value, ""}, {"Xcudafe", Kind::drop_value, ""}, {"Xcicc", Kind::drop_value, ""},
    {"Xopencc", Kind::drop_value, ""}, {"optimize", Kind::drop_value, ""},
    {"maxrregcount", Kind::drop_value, ""}, {"cudart", Kind::drop_value, ""}, {"cudadevrt", Kind::drop_value, ""},
    {"threads", Kind::drop_value, ""}, {"t", Kind::drop_value, ""},
    {"split-compile", Kind::drop_value, ""}, {"split-compile-extended", Kind::drop_value, ""},
    {"Ofast-compile", Kind::drop_value, ""}, {"Ofc", Kind::drop_value, ""},
    {"library", Kind::drop_value, ""}, {"l", Kind::drop_value, ""},
    {"library-path", Kind::drop_value, ""}, {"L", Kind::drop_value, ""},
    {"diag-error", Kind::drop_value, ""}, {"diag-suppress", Kind::drop_value, ""},
    {"diag-warn", Kind::drop_value, ""}, {"Werror", Kind::drop_value, ""},
    {"keep-dir", Kind::drop_value, ""}, {"save-temps-dir", Kind::drop_value, ""},
    {"run-args", Kind::drop_value, ""}, {"time", Kind::drop_value, ""}, {"dopt", Kind::drop_value, ""},
    {"input-drive-prefix", Kind::drop_value, ""}, {"idp", Kind::drop_value, ""},
    {"dependency-drive-prefix", Kind::drop_value, ""}, {"ddp", Kind::drop_value, ""},
    {"drive-prefix", Kind::drop_value, ""}, {"dp", Kind::drop_value, ""},
    {"fdevice-time-trace", Kind::drop_value, ""}, {"device-entity-has-hidden-visibility", Kind::drop_value, ""},
    {"entries", Kind::drop_value, ""}, {"e", Kind::drop_value, ""},
    {"host-linker-script", Kind::drop_value, ""}, {"hls", Kind::drop_value, ""},

    {"compile", Kind::drop, ""}, {"c", Kind::drop, ""}, {"link", Kind::drop, ""}, {"lib", Kind::drop, ""},
    {"device-w", Kind::drop, ""}, {"dw", Kind::drop, ""}, {"device-link", Kind::drop, ""},
    {"dlink", Kind::drop, ""}, {"dlto", Kind::drop, ""}, {"cuda", Kind::drop, ""}, {"cubin", Kind::drop, ""},
    {"fatbin", Kind::drop, ""}, {"ptx", Kind::drop, ""}, {"optix-ir", Kind::drop, ""},
    {"ltoir", Kind::drop, ""}, {"preprocess", Kind::drop, ""}, {"E", Kind::drop, ""}, {"run", Kind::drop, ""},
    {"generate-dependencies", Kind::drop, ""}, {"M", Kind::drop, ""},
    {"generate-nonsystem-dependencies", Kind::drop, ""}, {"MM", Kind::drop, ""},
    {"generate-dependencies-with-compile", Kind::drop, ""}, {"MD", Kind::drop, ""},
    {"generate-nonsystem-dependencies-with-compile", Kind::drop, ""}, {"MMD", Kind::drop, ""},
    {"generate-dependency-targets", Kind::drop, ""}, {"MP", Kind::drop, ""},
    {"debug", Kind::drop, ""}, {"g", Kind::drop, ""}, {"device-debug", Kind::drop, ""}, {"G", Kind::drop, ""},
    {"generate-line-info", Kind::drop, ""}, {"lineinfo", Kind::drop, ""}, {"pg", Kind::drop, ""},
    {"profile", Kind::drop, ""}, {"shared", Kind::drop, ""}, {"static-global-template-stub", Kind::drop_value, ""},
    {"extra-device-vectorization", Kind::drop, ""}, {"restrict", Kind::drop, ""},
    {"forward-unknown-to-host-compiler", Kind::drop, ""}, {"forward-unknown-opts", Kind::drop, ""},
    {"forward-unknown-to-host-linker", Kind::drop, ""}, {"dont-use-profile", Kind::drop, ""},
    {"noprof", Kind::drop, ""}, {"no-host-device-initializer-list", Kind::drop, ""},
    {"no-host-device-move-forward", Kind::drop, ""}, {"expt-allow-host-device", Kind::drop, ""},
    {"resource-usage", Kind::drop, ""}, {"res-usage", Kind::drop, ""}, {"verbose", Kind::drop, ""},
    {"v", Kind::drop, ""}, {"dryrun", Kind::drop, ""}, {"keep", Kind::drop, ""}, {"save-temps", Kind::drop, ""},
    {"clean-targets", Kind::drop, ""}, {"clean", Kind::drop, ""}, {"no-align-double", Kind::drop, ""},
    {"no-device-link", Kind::drop, ""}, {"nodlink", Kind::drop, ""}, {"disable-warnings", Kind::drop, ""},
    {"w", Kind::drop, ""}, {"Wall", Kind::drop, ""}, {"Wno-deprecated-gpu-targets", Kind::drop, ""},
    {"Wno-deprecated-declarations", Kind::drop, ""}, {"Wreorder", Kind::drop, ""},
    {"display-error-number", Kind::drop, ""}, {"err-no", Kind::drop, ""},
    {"no-display-error-number", Kind::drop, ""}, {"no-err-no", Kind::drop, ""},
    {"minimal", Kind::drop, ""}, {"allow-unsupported-compiler", Kind::drop, ""},
    {"compress-all", Kind::drop, ""}, {"no-compress", Kind::drop, ""}, {"no-exceptions", Kind::drop, ""},
    {"gen-opt-lto", Kind::drop, ""}, {"relocatable-ptx", Kind::drop, ""}, {"lto", Kind::drop, ""},
});
// clang-format on

const Option* find(string_view name) {
    const auto at =
        std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return o.name == name; });
    return at == kOptions.end() ? nullptr : &*at;
}

// -lcudart, -Lfoo, -t4, -m64: a letter and its value in one word. For other stages.
bool is_joined(string_view name) {
    if (name[0] == 'l' || name[0] == 'L') return true;
    const bool number = name.size() > 1 && name.find_first_not_of("0123456789", 1) == string_view::npos;
    return number && (name[0] == 't' || name[0] == 'm');
}

class Translator {
public:
    Translator(const std::vector<std::string>& arguments, CommandNotes& notes)
        : arguments_(arguments), notes_(notes) {}

    std::vector<std::string> run() {
        while (at_ < arguments_.size()) one(arguments_[at_++]);
        return std::move(out_);
    }

private:
    void one(const std::string& word) {
        const auto start = std::min(word.find_first_not_of('-'), std::size_t{2});
        if (start == 0 || start >= word.size()) return out_.push_back(word);
        const string_view rest = string_view(word).substr(start);
        const auto equals = rest.find('=');
        const string_view name = rest.substr(0, equals);
        // -Dname=value and -Iname=value are already clang's spelling.
        if (const auto* option = find(name)) {
            has_value_ = equals != string_view::npos;
            value_ = has_value_ ? std::string(rest.substr(equals + 1)) : std::string();
            return apply(*option);
        }
        if (is_joined(rest)) return;
        out_.push_back(word);
    }

    void apply(const Option& option) {
        switch (option.kind) {
            case Kind::drop:
                return;
            case Kind::drop_value:
                take();
                return;
            case Kind::forward:
                return forward(option.clang, take());
            case Kind::define:
                return out_.push_back("-D" + std::string(option.clang) + "=1");
            case Kind::host:
                return host_options(take());
            case Kind::arch:
                return note_architectures(take(), notes_);
            case Kind::numerics:
                return notes_.flags.push_back(std::string(option.clang) + "=" + take());
            case Kind::numerics_flag:
                notes_.flags.emplace_back(option.clang);
                return;
            case Kind::default_stream:
                if (take() == "per-thread") out_.emplace_back("-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1");
                return;
        }
    }

    std::string take() {
        if (has_value_ || at_ >= arguments_.size()) return value_;
        return arguments_[at_++];
    }

    void forward(string_view clang, std::string value) {
        if (clang == "-std") return out_.push_back("-std=" + value);
        if (clang == "-x" && value == "cu") value = "cuda";
        out_.emplace_back(clang);
        out_.push_back(std::move(value));
    }

    // "-fPIC,-Wall", "'-fPIC'" with its quotes, and "-fPIC -Wall" all occur.
    void host_options(const std::string& value) {
        for (auto& word : split_command(value)) {
            for (std::size_t from = 0; from <= word.size();) {
                const auto comma = std::min(word.find(',', from), word.size());
                if (comma > from) out_.push_back(word.substr(from, comma - from));
                from = comma + 1;
            }
        }
    }

    const std::vector<std::string>& arguments_;
    CommandNotes& notes_;
    std::size_t at_ = 0;
    bool has_value_ = false;
    std::string value_;
    std::vector<std::string> out_;
};

int number_of(string_view architecture) {
    const auto digits = architecture.find_first_of("0123456789");
    int number = 0;
    if (digits != string_view::npos) {
        std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
    }
    return number;
}

}  // namespace

std::vector<std::string> nvcc_to_clang(const std::vector<std::string>& arguments, CommandNotes& notes) {
    return Translator(arguments, notes).run();
}

void note_architectures(const std::string& value, CommandNotes& notes) {
    for (const string_view prefix : {"sm_", "compute_"}) {
        for (auto at = value.find(prefix); at != std::string::npos; at = value.find(prefix, at + 1)) {
            auto end = at + prefix.size();
            while (end < value.size() && std::isalnum(static_cast<unsigned char>(value[end]))) ++end;
            auto name = value.substr(at, end - at);
            auto& all = notes.architectures;
            if (number_of(name) > 0 && std::find(all.begin(), all.end(), name) == all.end())
                all.push_back(name);
        }
    }
}

std::string choose_architecture(const std::vector<std::string>& named) {
    constexpr int known[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90};
    int best = 0;
    bool newer = false;
    bool hopper_specific = false;
    for (const auto& name : named) {
        const int number = number_of(name);
        newer = newer || number > 90;
        hopper_specific = hopper_specific || name.ends_with("90a");
        if (std::find(std::begin(known), std::end(known), number) != std::end(known)) {
            best = std::max(best, number);
        }
    }
    if (best == 90 && hopper_specific) return "sm_90a";
    if (best > 0) return "sm_" + std::to_string(best);
    return newer ? "sm_90" : "sm_80";
}

}  // namespace mp::lint
