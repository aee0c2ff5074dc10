#include "kernels/base/cli/command_line.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include <boost/program_options.hpp>

#include "kernels/base/suggest.hpp"

namespace mp::cli {
namespace {

namespace po = boost::program_options;

// Boost wants a name for what is not an option. The blank keeps a user from giving it as one.
constexpr const char* kWord = " word";

po::options_description described(const Command& command, bool with_hidden) {
    po::options_description all(command.heading);
    for (const Option& o : command.options) {
        if (!o.help && !with_hidden) continue;
        const char* help = o.help ? o.help : "";
        if (o.repeats) {
            auto* list = po::value<std::vector<std::string>>()->composing()->value_name(o.value);
            all.add_options()(o.names, list, help);
        } else if (o.value) {
            all.add_options()(o.names, po::value<std::string>()->value_name(o.value), help);
        } else {
            all.add_options()(o.names, help);
        }
    }
    return all;
}

Error unknown_option(const Command& command, const std::string& option) {
    std::vector<std::string> names;
    for (const Option& o : command.options) {
        if (o.help) names.push_back("--" + std::string(long_name(o)));
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    std::string hint = did_you_mean(option.substr(0, option.find('=')), views);
    if (hint.empty()) hint = "'" + command.help_command + "' lists the options" + command.more_help;
    return {command.prefix + "unknown option " + command.quoted(option), hint};
}

}  // namespace

std::string_view long_name(const Option& option) {
    const std::string_view names(option.names);
    return names.substr(0, names.find(','));
}

// Takes the values out of Boost's map.
class Reader {
public:
    static Values read(const Command& command, const po::variables_map& map) {
        Values out;
        for (const Option& o : command.options) {
            const std::string name(long_name(o));
            if (!map.count(name)) continue;
            std::vector<std::string>& values = out.given_[name];
            if (o.repeats) values = map[name].as<std::vector<std::string>>();
            if (o.value && !o.repeats) values = {map[name].as<std::string>()};
        }
        if (map.count(kWord)) out.words_ = map[kWord].as<std::vector<std::string>>();
        return out;
    }
};

std::string Values::text(const std::string& name) const {
    const auto it = given_.find(name);
    return it == given_.end() || it->second.empty() ? std::string() : it->second.front();
}

std::vector<std::string> Values::list(const std::string& name) const {
    const auto it = given_.find(name);
    return it == given_.end() ? std::vector<std::string>() : it->second;
}

std::string help_of(const Command& command) {
    std::ostringstream out;
    out << described(command, false);
    return out.str();
}

Result<Values> parse(const Command& command, const std::vector<std::string>& words) {
    po::options_description all = described(command, true);
    all.add_options()(kWord, po::value<std::vector<std::string>>(), "");
    po::positional_options_description positional;
    if (command.takes_words) positional.add(kWord, -1);
    try {
        namespace style = po::command_line_style;
        po::variables_map map;
        po::store(po::command_line_parser(words)
                      .options(all)
                      .positional(positional)
                      .style(style::default_style & ~style::allow_guessing)
                      .run(),
                  map);
        return Reader::read(command, map);
    } catch (const po::unknown_option& e) {
        return unknown_option(command, e.get_option_name());
    } catch (const po::error& e) {
        return Error{command.prefix + e.what(), "'" + command.help_command + "' lists the options"};
    }
}

bool takes_next_word(std::span<const Option> options, std::string_view word) {
    for (const Option& o : options) {
        if (!o.value) continue;
        const std::string_view names(o.names);
        const std::size_t comma = names.find(',');
        if (word.starts_with("--") && word.substr(2) == long_name(o)) return true;
        if (comma != std::string_view::npos && word.size() == 2 && word[0] == '-' &&
            word[1] == names[comma + 1])
            return true;
    }
    return false;
}

std::vector<std::string> split_commas(const std::vector<std::string>& values) {
    std::vector<std::string> out;
    for (const std::string& value : values) {
        std::istringstream in(value);
        for (std::string word; std::getline(in, word, ',');) {
            if (!word.empty()) out.push_back(word);
        }
    }
    return out;
}

Status one_of(const std::string& option, const std::string& value,
              std::span<const std::string_view> choices) {
    std::string all;
    for (const std::string_view choice : choices) {
        if (value == choice) return Done{};
        all += (all.empty() ? "" : ", ") + std::string(choice);
    }
    return Error{option + ": '" + value + "' is none of " + all, did_you_mean(value, choices)};
}

Result<std::vector<Destination>> destinations(const std::string& option,
                                              const std::vector<std::string>& values,
                                              std::span<const std::string_view> formats) {
    std::vector<Destination> out;
    for (const std::string& value : values) {
        const std::size_t equals = value.find('=');
        const std::string format = value.substr(0, equals);
        if (const Status known = one_of(option, format, formats); !known) return known.error();
        Destination one;
        while (formats[one.format] != format) ++one.format;
        if (equals != std::string::npos) one.file = value.substr(equals + 1);
        if (equals != std::string::npos && one.file.empty())
            return Error{option + ": '" + value + "' names no file", option + " " + format + "=FILE"};
        if (one.file == "-") one.file.clear();
        for (const Destination& other : out)
            if (other.file == one.file)
                return Error{option + ": two reports go to " +
                                 (one.file.empty() ? "standard output" : "'" + one.file + "'"),
                             "give each its own file: " + option + " " + format + "=FILE"};
        out.push_back(std::move(one));
    }
    if (out.empty()) out.emplace_back();
    return out;
}

void fill_standard_streams() {
    for (const int fd : {0, 1, 2}) {
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

}  // namespace mp::cli
