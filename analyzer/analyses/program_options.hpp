#pragma once

// Options that a program has and that stay as their defaults have them.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "analyzer/analyses/context.hpp"

namespace mp::lint {

// Of the constant of an operand or a parameter: True, False, 1, 0.
std::optional<bool> truth_of(std::string_view constant);

// "fp16", "bfloat16", "16-mixed": values of options that name a dtype of 16 bits, or fp8.
bool names_low_precision(std::string_view value);

// load_in_4bit=True of BitsAndBytesConfig() is no value of the program's own option of that name.
bool has_options_of_its_own(std::string_view callee);

// The default of an option that has to be another one where control comes to this place: `bits: int = 16`, and `if
// args.bits in [4, 8]:` around it. Without knowledge of the project's texts fields that name a precision are left out,
// because scripts and configurations set them.
std::optional<SourceSpan> option_that_excludes(const RuleContext&, const Function&, const SourceSpan& at);

// The default of an option that has to be on where control comes to this place: who runs the program without the
// option does not come here. Scripts of the project may give it.
std::optional<SourceSpan> option_off_by_default(const RuleContext&, const Function&, const SourceSpan& at);

// The condition of a block that asks for a setting which no constant of the program turns on: "cfg.clip > 0". Empty:
// none. What control needs to come to one of the `others`, too, and what asks for precision or the scaler do not count.
Symbol open_setting(const Program&, const Function&, std::uint32_t block,
                    std::span<const std::uint32_t> others);

// The default of an option whose value is not the wanted one, where no text of the project gives it that.
std::optional<SourceSpan> default_other_than(const RuleContext&, const Function&, const Operand& option,
                                             std::string_view wanted);

// The default that keeps a value of a call off, where no text of the project turns it on: autocast(enabled=args.fp16),
// and parser.add_argument("--fp16", action="store_true").
std::optional<SourceSpan> default_that_keeps_off(const RuleContext&, const Function&, const Operand&);

}  // namespace mp::lint
