#include "runtime/trace/identity.hpp"

#include <unistd.h>

#include <charconv>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace mp::trace {
namespace {

// Variables of one launcher; the first that is set is used. A row matches when its rank is a number.
struct Launcher {
    const char* name;
    const char* rank;
    std::initializer_list<const char*> local_rank;
    std::initializer_list<const char*> world_size;
    std::initializer_list<const char*> restart;
};

// torchrun is started under srun or mpirun, and mpirun under sbatch, whose shell has SLURM_PROCID=0 for
// all its children. So the launcher that is nearer to the process comes first.
const Launcher kLaunchers[] = {
    {"torchrun", "RANK", {"LOCAL_RANK"}, {"WORLD_SIZE"}, {"TORCHELASTIC_RESTART_COUNT"}},
    {"openmpi", "OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_LOCAL_RANK"}, {"OMPI_COMM_WORLD_SIZE"}, {}},
    {"mpich", "PMI_RANK", {"MPI_LOCALRANKID"}, {"PMI_SIZE"}, {}},
    {"srun",
     "SLURM_PROCID",
     {"SLURM_LOCALID"},
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     {"SLURM_RESTART_COUNT"}},
};

constexpr std::size_t kMaxHostInName = 64;

std::string_view text_of(const Environment& environment, const char* name) {
    const char* value = environment(name);
    return value ? value : "";
}

std::int32_t number_of(const Environment& environment, std::initializer_list<const char*> names,
                       std::int32_t otherwise) {
    for (const char* name : names) {
        const std::string_view text = text_of(environment, name);
        std::int32_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (!text.empty() && error == std::errc() && end == text.data() + text.size() && value >= 0)
            return value;
    }
    return otherwise;
}

std::string host_name() {
    char host[256] = {};
    if (::gethostname(host, sizeof host - 1) != 0) return {};
    return host;
}

// `value` as a part of a file name. It never begins with a dot, so it is never "..".
std::string reduced(std::string_view value) {
    std::string out;
    for (const char c : value) {
        const bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                          c == '_' || c == '-' || (c == '.' && !out.empty());
        out += kept ? c : '_';
    }
    return out;
}

std::string number_or_x(std::int32_t value) { return value < 0 ? "x" : std::to_string(value); }
std::string text_or_x(std::string_view value) { return value.empty() ? "x" : reduced(value); }

std::string start_time(std::int64_t unix_seconds) {
    const auto seconds = static_cast<std::time_t>(unix_seconds);
    std::tm utc{};
    if (!::gmtime_r(&seconds, &utc)) return "x";
    char out[64];
    const std::size_t size = std::strftime(out, sizeof out, "%Y%m%d-%H%M%S", &utc);
    return {out, size};
}

}  // namespace

Identity identity_of_process(const Environment& environment) {
    Identity id;
    id.host = host_name();
    id.pid = ::getpid();
    for (const Launcher& launcher : kLaunchers) {
        const std::int32_t rank = number_of(environment, {launcher.rank}, -1);
        if (rank < 0) continue;
        id.launcher = launcher.name;
        id.rank = Rank{rank};
        id.local_rank = number_of(environment, launcher.local_rank, -1);
        id.world_size = number_of(environment, launcher.world_size, -1);
        id.restart = number_of(environment, launcher.restart, 0);
        break;
    }
    const std::string_view elastic = text_of(environment, "TORCHELASTIC_RUN_ID");
    id.job = elastic.empty() || elastic == "none" ? text_of(environment, "SLURM_JOB_ID") : elastic;
    return id;
}

Result<std::string> expand_pattern(std::string_view pattern, const Identity& id,
                                   const Environment& environment, std::int64_t unix_seconds) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            out += pattern[i];
            continue;
        }
        const char key = ++i < pattern.size() ? pattern[i] : '\0';
        if (key == '%') {
            out += '%';
        } else if (key == 'p') {
            out += std::to_string(id.pid);
        } else if (key == 'h') {
            out += text_or_x(id.host);
        } else if (key == 'r') {
            out += number_or_x(id.rank.value);
        } else if (key == 'l') {
            out += number_or_x(id.local_rank);
        } else if (key == 's') {
            out += number_or_x(id.world_size);
        } else if (key == 'j') {
            out += text_or_x(id.job);
        } else if (key == 'c') {
            out += std::to_string(id.restart);
        } else if (key == 't') {
            out += start_time(unix_seconds);
        } else if (key == 'q' && i + 1 < pattern.size() && pattern[i + 1] == '{') {
            const std::size_t close = pattern.find('}', i);
            if (close == std::string_view::npos)
                return Error{"'%q{' without '}' in '" + std::string(pattern) + "'", "write %q{NAME}"};
            const std::string name(pattern.substr(i + 2, close - i - 2));
            const char* value = environment(name.c_str());
            if (!value)
                return Error{"%q{" + name + "}: the variable is not set", "set it, or leave the key out"};
            out += reduced(value);
            i = close;
        } else {
            return Error{"unknown key '%" + (key ? std::string(1, key) : std::string()) + "' in '" +
                             std::string(pattern) + "'",
                         "known are %p %h %r %l %s %j %c %t %q{VAR} %%"};
        }
    }
    return out;
}

std::string recording_name(const Identity& id) {
    return "r" + number_or_x(id.rank.value) + ".c" + std::to_string(id.restart) + "." +
           text_or_x(id.host).substr(0, kMaxHostInName) + ".p" + std::to_string(id.pid) + ".mpt";
}

}  // namespace mp::trace
