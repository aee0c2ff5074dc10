#pragma once

#include <csignal>
#include <string>
#include <string_view>

namespace mp::launch {

// Every line that mp-trace prints on stderr begins with "mp-trace: ", with control characters escaped. A
// closed or full stderr, or a reader that has exited, never causes an error or a signal, because the
// program still has to start.
void say(const std::string& line);
// Several lines, indented by four, with control characters escaped except for line ends.
void say_text(const std::string& text);
// One line of a terminal, rewritten in place; an empty `state` clears it.
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

// Writes all of `text`, with these signals ignored. Returns false when not everything was written; errno is
// the reason.
bool say_on(int fd, std::string_view text);

}  // namespace mp::launch
