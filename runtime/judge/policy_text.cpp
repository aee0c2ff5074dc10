#include "runtime/judge/policy_text.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "kernels/base/files.hpp"
#include "runtime/trace/display.hpp"

namespace mp::trace {
namespace {

constexpr std::size_t kLongest = 4096;   // bytes of a policy text
constexpr off_t kLargestList = 1 << 20;  // bytes of a list file

struct Pair {
    std::string key, value;
};

Error wrong(std::string_view text, const std::string& what, std::string hint) {
    return Error{"policy " + quoted(text.substr(0, 200)) + ": " + what, std::move(hint)};
}

Result<std::vector<Pair>> pairs_of(std::string_view text, std::string_view body, std::string_view keys) {
    std::vector<Pair> out;
    while (!body.empty()) {
        const std::string_view item = body.substr(0, body.find(','));
        body.remove_prefix(std::min(item.size() + 1, body.size()));
        const std::size_t equals = item.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return wrong(text, quoted(item) + " is not of the form key=value",
                         "the keys are " + std::string(keys));
        out.push_back({std::string(item.substr(0, equals)), std::string(item.substr(equals + 1))});
    }
    return out;
}

Result<DType> dtype_of(std::string_view text, const std::string& value) {
    if (value == "none" || value == "None" || value.empty()) return DType::unknown;
    const std::optional<DType> dtype = dtype_from_name(value);
    if (!dtype || !is_float(*dtype))
        return wrong(text, quoted(value) + " is not a float dtype", "fp32, bf16, fp16, e4m3, e5m2 or none");
    return *dtype;
}

Result<DeclaredPolicy> fsdp(DeclaredPolicy p, std::string_view body) {
    constexpr std::string_view kKeys = "param, reduce, buffer and output";
    const auto pairs = pairs_of(p.text, body, kKeys);
    if (!pairs) return pairs.error();
    p.kind = DeclaredPolicy::Kind::fsdp;
    for (const auto& [key, value] : *pairs) {
        DType* into = key == "param"    ? &p.param
                      : key == "reduce" ? &p.reduce
                      : key == "buffer" ? &p.buffer
                      : key == "output" ? &p.output
                                        : nullptr;
        if (!into) return wrong(p.text, "unknown key " + quoted(key), "the keys are " + std::string(kKeys));
        const Result<DType> dtype = dtype_of(p.text, value);
        if (!dtype) return dtype.error();
        *into = *dtype;
    }
    return p;
}

Result<DeclaredPolicy> autocast(DeclaredPolicy p, std::string_view body, std::string_view version) {
    const auto pairs = pairs_of(p.text, body, "cpu and cuda");
    if (!pairs) return pairs.error();
    if (pairs->size() != 1) return wrong(p.text, "one device and its dtype is wanted", "autocast:cuda=bf16");
    const auto& [device, value] = pairs->front();
    const Result<DType> low = dtype_of(p.text, value);
    if (!low) return low.error();
    Result<Policy> list = Policy::for_torch(device, version);
    if (!list && !version.empty()) list = Policy::for_torch(device, "");
    if (!list) return wrong(p.text, list.error().message, list.error().hint);
    p.kind = DeclaredPolicy::Kind::autocast;
    p.device = device;
    p.low = *low;
    p.list = std::move(*list);
    return p;
}

Result<DeclaredPolicy> tf32(DeclaredPolicy p, std::string_view body) {
    const auto pairs = pairs_of(p.text, body, "matmul and cudnn");
    if (!pairs) return pairs.error();
    p.kind = DeclaredPolicy::Kind::tf32;
    for (const auto& [key, value] : *pairs) {
        const bool on = value == "on" || value == "true" || value == "1";
        if (key == "matmul")
            p.tf32_matmul = on;
        else if (key == "cudnn")
            p.tf32_cudnn = on;
        else
            return wrong(p.text, "unknown key " + quoted(key), "the keys are matmul and cudnn");
    }
    return p;
}

Result<DeclaredPolicy> listed(DeclaredPolicy p, Result<Policy> list) {
    if (!list) return wrong(p.text, list.error().message, list.error().hint);
    p.kind = DeclaredPolicy::Kind::list;
    p.low = list->low_precision();
    p.list = std::move(*list);
    return p;
}

Status check_file(std::string_view text, const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
        return wrong(text, quoted(path) + " is not a readable file", "");
    if (info.st_size > kLargestList)
        return wrong(text, quoted(path) + " is larger than 1 MiB, which no list is", "");
    return Done{};
}

Result<DeclaredPolicy> hmp(DeclaredPolicy p, std::string_view body) {
    const auto pairs = pairs_of(p.text, body, "bf16 and fp32");
    if (!pairs) return pairs.error();
    std::string low, high;
    for (const auto& [key, value] : *pairs) {
        if (key != "bf16" && key != "fp32")
            return wrong(p.text, "unknown key " + quoted(key), "the keys are bf16 and fp32");
        if (const Status good = check_file(p.text, value); !good) return good.error();
        (key == "bf16" ? low : high) = value;
    }
    return listed(std::move(p), Policy::from_hmp_files(low, high));
}

Result<DeclaredPolicy> list_file(DeclaredPolicy p, const std::string& path) {
    if (const Status good = check_file(p.text, path); !good) return good.error();
    std::string content;
    read_file(path, content);
    return listed(std::move(p), Policy::parse(content, path));
}

bool is_path(std::string_view text) {
    return text.find('/') != std::string_view::npos || text.ends_with(".txt");
}

}  // namespace

Result<DeclaredPolicy> parse_policy(std::string_view text, std::string_view torch_version) {
    DeclaredPolicy p;
    p.text = text;
    if (text.empty() || text.size() > kLongest || text.find('\0') != std::string_view::npos)
        return wrong(text, "no policy is written like this",
                     "fsdp:param=bf16,reduce=fp32 or autocast:cuda=bf16");
    if (text.starts_with("hmp:")) return hmp(std::move(p), text.substr(4));
    const std::vector<std::string_view> names = Policy::built_in_names();
    if (std::ranges::find(names, text) != names.end()) return listed(std::move(p), Policy::built_in(text));
    const std::string_view whole = text.substr(0, text.find('@'));
    if (whole.size() < text.size()) p.layer = text.substr(whole.size() + 1);
    if (whole == "ddp" || whole.starts_with("ddp:")) return p;
    if (whole.starts_with("fsdp:")) return fsdp(std::move(p), whole.substr(5));
    if (whole.starts_with("autocast:")) return autocast(std::move(p), whole.substr(9), torch_version);
    if (whole.starts_with("tf32:")) return tf32(std::move(p), whole.substr(5));
    if (is_path(text)) return list_file(std::move(p), std::string(text));
    return wrong(
        text, "no policy is written like this",
        "fsdp:param=bf16,reduce=fp32; autocast:cuda=bf16; ddp; hmp:bf16=FILE,fp32=FILE; torch-cuda-2.12 "
        "or another built-in list; or the path of a list of your own");
}

}  // namespace mp::trace
