#include "analyzer/driver/policy_command.hpp"

#include <algorithm>
#include <set>

#include "kernels/base/child.hpp"

namespace mp::lint {
namespace {

// Run by the Python that the user names; argv[1] is the dispatch key.
constexpr std::string_view kAskTorch = R"(import sys, torch
print("torch", torch.__version__)
for name in torch._C._dispatch_get_registrations_for_dispatch_key(sys.argv[1]):
    print(name)
)";

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) lines.push_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

// "mm" of "aten::mm.out"; empty for ops of other libraries.
std::string_view aten_name(std::string_view registered) {
    constexpr std::string_view kAten = "aten::";
    if (!registered.starts_with(kAten)) return {};
    registered.remove_prefix(kAten.size());
    return registered.substr(0, registered.find('.'));
}

Op op_or_name(std::string_view name) {
    const Op op = op_from_name(name);
    return op.known() ? op : Op(name);
}

std::string last_line(std::string_view text) {
    const auto lines = lines_of(text);
    return lines.empty() ? std::string("it says nothing") : std::string(lines.back());
}

struct Dump {
    bool from_torch = false;
    std::string python = "python3";
    std::string device = "cuda";
};

Result<Dump> read_dump(const std::vector<std::string>& words) {
    Dump dump;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool has_value = i + 1 < words.size();
        if (words[i] == "--from-torch")
            dump.from_torch = true;
        else if (words[i] == "--python" && has_value)
            dump.python = words[++i];
        else if (words[i] == "--device" && has_value)
            dump.device = words[++i];
        else
            return Error{"policy dump: '" + words[i] + "' is not understood",
                         "write: mp-lint policy dump --from-torch [--python PY] [--device cuda]"};
    }
    if (!dump.from_torch)
        return Error{"policy dump: no source is given",
                     "--from-torch runs Python and asks its torch; --python names which Python"};
    return dump;
}

Result<std::string> dump_from_torch(const Dump& dump) {
    const Result<ChildEnd> child =
        run_tool({dump.python, "-c", std::string(kAskTorch), "Autocast" + upper(dump.device)});
    if (!child) return child.error();
    if (!child->good())
        return Error{"policy dump: " + dump.python + " failed: " + last_line(child->err),
                     "--python names a Python that can import torch"};
    return policy_from_registrations(child->out, dump.device);
}

Result<std::string> show(const std::vector<std::string>& words) {
    if (words.size() != 2)
        return Error{"policy show: one name is needed", "mp-lint policy list names them all"};
    const Result<Policy> policy = Policy::built_in(words[1]);
    if (!policy) return policy.error();
    return "# " + std::string(policy->name()) + "\n" + policy->text();
}

}  // namespace

Result<std::string> policy_from_registrations(std::string_view registrations, std::string_view device) {
    constexpr std::string_view kVersion = "torch ";
    const auto lines = lines_of(registrations);
    if (lines.empty() || !lines[0].starts_with(kVersion))
        return Error{"policy dump: Python did not print torch's version", "does torch import?"};
    const std::string_view version = lines[0].substr(kVersion.size());
    std::set<std::string_view> registered;
    for (std::size_t i = 1; i < lines.size(); ++i)
        if (const std::string_view op = aten_name(lines[i]); !op.empty()) registered.insert(op);
    if (registered.empty())
        return Error{
            "policy dump: torch " + std::string(version) + " has no autocast list for " + std::string(device),
            "another device, or the package that brings this device, imported by torch"};
    const Result<Policy> known = Policy::for_torch(device, version);
    if (!known) return known.error();

    // Torch may register an op under a name that our lists spell differently.
    std::set<Op> present;
    for (const std::string_view op : registered) present.insert(op_or_name(op));
    Policy kept = *known;
    kept.keep_only([&](Op op) { return present.contains(op); });
    std::string out = "# torch " + std::string(version) + ", " + std::string(device) +
                      " autocast, as the dispatcher has it; categories from " + std::string(known->name()) +
                      ".\n" + kept.text();
    std::string unknown;
    for (const std::string_view op : registered)
        if (!known->find(op_or_name(op))) unknown += "# " + std::string(op) + "\n";
    if (!unknown.empty())
        out += "\n# Registered too, in a category that is not known here: put each in a section.\n" + unknown;
    return out;
}

Result<std::string> run_policy_command(const std::vector<std::string>& words) {
    const std::string_view verb = words.empty() ? std::string_view("list") : words[0];
    if (verb == "list") {
        std::string out;
        for (const std::string_view name : Policy::built_in_names()) out += std::string(name) + "\n";
        return out;
    }
    if (verb == "show") return show(words);
    if (verb != "dump")
        return Error{"policy: '" + std::string(verb) + "' is not understood",
                     "list, show NAME, or dump --from-torch"};
    const Result<Dump> dump = read_dump(words);
    if (!dump) return dump.error();
    return dump_from_torch(*dump);
}

}  // namespace mp::lint
