#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/result.hpp"
#include "kernels/numerics/dtype.hpp"
#include "kernels/numerics/op.hpp"
#include "kernels/numerics/source_span.hpp"

namespace mp {

// The category of an op in a policy. The names are PyTorch's autocast categories. HMP's BF16, FP32 and
// "widest" lists are lower, fp32 and promote.
enum class Category : unsigned char {
    unlisted,            // runs in the dtype of its first input
    lower,               // inputs are cast to the region's low-precision dtype
    fp32,                // inputs are cast to fp32
    fp32_set_opt_dtype,  // as fp32, unless the call names an output dtype
    fp32_append_dtype,   // as fp32, by appending the dtype argument
    promote,             // inputs are cast to the widest input dtype
    banned,              // raises an error inside the region
};

std::string_view name_of(Category);

// Decides the dtype in which an op runs. mp-lint, the dtype census of a run and the advice use the same
// object. Immutable after parsing.
class Policy {
public:
    struct Entry {
        Op op;
        Category category = Category::unlisted;
        SourceSpan at;  // the line of the list that contains the entry
    };

    // A problem found by the parser: an op in two lists, an unknown op. Each with file:line.
    struct Problem {
        SourceSpan at;
        std::string message;
    };

    // The built-in policies: "torch-cuda-2.12" and "torch-cpu-2.5" (also older ones), "hmp", "apex-o1",
    // "apex-o2", and torch-xpu, -mps, -hpu and -xla. A device without a version selects the newest list.
    static Result<Policy> built_in(std::string_view name);
    static std::vector<std::string_view> built_in_names();
    // The list that the given torch version ("2.1", "1.13.1+cu117") uses for a device ("cuda", "cpu",
    // "xpu", "mps", "hpu", "xla"): the newest list that is not newer than the version. An empty version
    // selects the newest list.
    static Result<Policy> for_torch(std::string_view device, std::string_view version);
    // User files in HMP's syntax: one op name per line, '#' starts a comment. Either path may be empty;
    // that list is then empty. The widest-input list stays HMP's own.
    static Result<Policy> from_hmp_files(std::string_view bf16_path, std::string_view fp32_path);
    // Sections "[lower]", "[fp32]", ... with one op per line; before them optionally "dtype = bf16",
    // "family = autocast" (or apex, hmp) and "device = cuda". The format of the built-in lists.
    static Result<Policy> parse(std::string_view text, std::string_view file_name);
    // A file in that format.
    static Result<Policy> from_file(std::string_view path);

    std::string_view name() const { return name_; }
    std::string_view device() const { return device_; }  // "cuda"; empty when the list has no device
    // Drops the entries of other ops.
    void keep_only(const std::function<bool(Op)>& wanted);
    // The list in the sectioned format; parsing it returns an equal policy.
    std::string text() const;
    DType low_precision() const { return low_; }  // the region's default dtype: bf16 or fp16
    const Entry* find(Op) const;
    Category category(Op) const;
    const std::vector<Entry>& entries() const { return entries_; }  // sorted by op name
    const std::vector<Problem>& problems() const { return problems_; }

    // The dtype in which `op` computes inside a region of dtype `low` (unknown: the policy's own). Rules in
    // this order (Habana HMP's): the lower and fp32 lists; the first input for in-place ops; the widest
    // input for the promote list; else the first input. Integer inputs are never cast and do not decide.
    // The result is `unknown` when the inputs that decide are unknown, or when the op is banned.
    // PyTorch's autocast (family autocast) differs. It wraps no in-place op, so no list applies to one. It
    // does not cast fp64 inputs. Its promote list rejects a half other than the region's. An unlisted op
    // with inputs of several dtypes is `unknown`, because whether the widest wins depends on their number
    // of dimensions. fp16 beside bf16 is `unknown` in every family.
    // their number of dimensions. fp16 beside bf16 is `unknown` in every family.
    DType dtype_of(Op, std::span<const DType> inputs, bool in_place = false,
                   DType low = DType::unknown) const;

private:
    friend class PolicyReader;
    enum class Family : unsigned char { hmp, autocast, apex };

    DType listed_dtype(Category, std::span<const DType> inputs, DType low) const;
    DType widest(std::span<const DType> inputs, DType low) const;
    DType first(std::span<const DType> inputs, bool in_place) const;

    std::string name_;
    std::string device_;
    DType low_ = DType::bf16;
    Family family_ = Family::hmp;
    std::vector<Entry> entries_;
    std::vector<Problem> problems_;
};

}  // namespace mp
