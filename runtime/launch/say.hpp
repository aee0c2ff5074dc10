#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace mp::launch {

// Everything of ours on stderr begins with "mp-trace: ", control characters escaped. A closed or full stderr,
// or a reader that went away, is never an error and never a signal: the program is still to come.
void say(const std::string& line);
// Several lines as they are, indented by four, control characters other than the line ends escaped.
void say_text(const std::string& text);
// One line of a terminal, rewritten in place; empty: wipes it.
void say_state(const std::string& state);

// Ignores SIGPIPE and SIGXFSZ in its scope, so that a write fails with an errno instead. Afterwards they are as before:
// a signal that stays ignored stays so in the program that is started.
class SignalsHeld {
public:
    SignalsHeld();
    ~SignalsHeld();
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;

private:
    struct sigaction pipe_{}, limit_{};
};

// Writes all of `text`, with these signals held. False: not all was written, and errno says why.
bool say_on(int fd, std::string_view text);

}  // namespace mp::launch
