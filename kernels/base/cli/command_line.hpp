#pragma once

#include <charconv>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/escape.hpp"
#include "kernels/base/result.hpp"

// The command lines of both tools: tables of options, their help, and values that were checked. Only this folder
// knows Boost.Program_options.

namespace mp::cli {

// One line of --help. Without a value name the option is a switch; an option that `repeats` may be given again.
// Without help it is accepted and not listed: tests use it.
struct Option {
    const char* names = "";  // "output" or "output,o"
    const char* value = nullptr;
    const char* help = "";
    bool repeats = false;
};

std::string_view long_name(const Option&);  // "output"

// What the user gave. A name is the long one, without dashes.
class Values {
public:
    std::size_t count(const std::string& name) const { return given_.count(name); }
    bool has(const std::string& name) const { return count(name) > 0; }
    std::string text(const std::string& name) const;                  // empty when it was not given
    std::vector<std::string> list(const std::string& name) const;     // empty when it was not given
    const std::vector<std::string>& words() const { return words_; }  // what is not an option

private:
    friend class Reader;
    std::map<std::string, std::vector<std::string>> given_;
    std::vector<std::string> words_;
};

// The options of a tool, or of one of its verbs.
struct Command {
    std::string heading;  // of the options in the help
    std::span<const Option> options;
    std::string help_command;  // "mp-trace gate --help", which a hint names
    std::string prefix{};      // of errors: "gate: "
    std::string more_help{};   // what the hint about an unknown option says after it
    bool takes_words = true;   // false: a word is an error
    std::string (*quoted)(std::string_view) = shell_word;  // how an error shows what the user wrote
};

// The table for the help, under the heading.
std::string help_of(const Command&);

// An abbreviation of an option is not accepted: a new option would change its meaning.
Result<Values> parse(const Command&, const std::vector<std::string>& words);

// True when `word` is an option of the table whose value is the next word ("-o", "--mode").
bool takes_next_word(std::span<const Option>, std::string_view word);

// "a,b" and "c" as a, b, c; empty parts are omitted.
std::vector<std::string> split_commas(const std::vector<std::string>& values);

// An Error that lists the choices, and the nearest of them, when `value` is none of them.
Status one_of(const std::string& option, const std::string& value, std::span<const std::string_view> choices);

// Where a report goes: FORMAT or FORMAT=FILE. Standard output without a file, or with "-".
struct Destination {
    std::size_t format = 0;  // in the list of formats
    std::string file{};      // empty: standard output
};
// The values of an option as destinations; without values the first format goes to standard output. An Error for a
// format that is not in the list, for an empty name of a file, and when two reports go to one place.
Result<std::vector<Destination>> destinations(const std::string& option,
                                              const std::vector<std::string>& values,
                                              std::span<const std::string_view> formats);

// The whole text as a number in [least, most].
template <typename T>
Result<T> number(const std::string& option, const std::string& text, T least, T most) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
        return value;
    std::ostringstream message;
    message << option << ": '" << text << "' is not a number from " << least << " to " << most;
    return Error{message.str(), ""};
}

// Without this, a closed standard stream gives its number to the next file that is opened, and our text to that
// file. The stream becomes one that refuses to be written to, so that a lost report is an error. It closes on exec,
// so that a program that we become finds it closed again.
void fill_standard_streams();

}  // namespace mp::cli
