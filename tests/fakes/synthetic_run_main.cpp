// Writes a synthetic run for trials by hand and for benches:
//   synthetic_run OUT --ranks 2 --layers 4 --steps 8 --overflow LAYER,OP,STEP,RANK --skipped 3 --skipped 4 ...
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tests/fakes/synthetic_run.hpp"

namespace {

using mp::trace::fakes::Plan;

int number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        std::fprintf(stderr, "synthetic_run: '%.*s' is no number\n", static_cast<int>(text.size()),
                     text.data());
        std::exit(2);
    }
    return value;
}

// The part of "a,b,c" with index `at`.
std::string part(std::string_view text, int at) {
    for (; at > 0 && !text.empty(); --at) {
        const std::size_t comma = text.find(',');
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return std::string(text.substr(0, text.find(',')));
}

using Set = std::function<void(Plan&, const std::string&)>;

const std::map<std::string_view, Set> kOptions = {
    {"--ranks", [](Plan& p, const std::string& v) { p.ranks = number(v); }},
    {"--layers", [](Plan& p, const std::string& v) { p.layers = number(v); }},
    {"--steps", [](Plan& p, const std::string& v) { p.steps = number(v); }},
    {"--seed", [](Plan& p, const std::string& v) { p.seed = static_cast<std::uint64_t>(number(v)); }},
    {"--dtype", [](Plan& p, const std::string& v) { p.dtype = mp::dtype_from_name(v).value_or(p.dtype); }},
    {"--sample-every", [](Plan& p, const std::string& v) { p.sample_every = number(v); }},
    {"--overflow",
     [](Plan& p, const std::string& v) {
         p.overflow = {number(part(v, 0)), part(v, 1), number(part(v, 2)), number(part(v, 3))};
     }},
    {"--skipped", [](Plan& p, const std::string& v) { p.skipped.push_back(number(v)); }},
    {"--disagree",
     [](Plan& p, const std::string& v) { p.disagreement = {number(part(v, 0)), number(part(v, 1))}; }},
    {"--stagnating", [](Plan& p, const std::string& v) { p.stagnating = number(v); }},
    {"--off-policy", [](Plan& p, const std::string& v) { p.off_policy = number(v); }},
    {"--missing", [](Plan& p, const std::string& v) { p.missing.push_back(number(v)); }},
    {"--truncated", [](Plan& p, const std::string& v) { p.truncated = number(v); }},
};

const std::map<std::string_view, std::function<void(Plan&)>> kSwitches = {
    {"--loss-scale", [](Plan& p) { p.loss_scale = true; }},
    {"--low-reduction", [](Plan& p) { p.low_reduction = true; }},
    {"--absorbing-sum", [](Plan& p) { p.absorbing_sum = true; }},
    {"--watch", [](Plan& p) { p.mode = mp::trace::Mode::watch; }},
    {"--killed", [](Plan& p) { p.killed = true; }},
};

int usage() {
    std::fprintf(stderr, "usage: synthetic_run OUT");
    for (const auto& [name, set] : kOptions) std::fprintf(stderr, " [%s V]", std::string(name).c_str());
    for (const auto& [name, set] : kSwitches) std::fprintf(stderr, " [%s]", std::string(name).c_str());
    std::fprintf(stderr, "\n");
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argv[1][0] == '-') return usage();
    Plan plan;
    for (int i = 2; i < argc; ++i) {
        if (const auto found = kSwitches.find(argv[i]); found != kSwitches.end()) {
            found->second(plan);
        } else if (const auto option = kOptions.find(argv[i]); option != kOptions.end() && i + 1 < argc) {
            option->second(plan, argv[++i]);
        } else {
            return usage();
        }
    }
    std::error_code failed;
    std::filesystem::create_directories(argv[1], failed);
    const mp::Status status = mp::trace::fakes::write(plan, argv[1]);
    if (status) return 0;
    std::fprintf(stderr, "synthetic_run: %s\n", status.error().message.c_str());
    return 1;
}
