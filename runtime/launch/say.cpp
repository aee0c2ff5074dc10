#include "runtime/launch/say.hpp"

#include <unistd.h>

#include <cerrno>

#include "kernels/base/files.hpp"
#include "runtime/launch/words.hpp"

namespace mp::launch {

SignalsHeld::SignalsHeld() {
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe_);
    ::sigaction(SIGXFSZ, &ignore, &limit_);
}

SignalsHeld::~SignalsHeld() {
    const int error = errno;
    ::sigaction(SIGPIPE, &pipe_, nullptr);
    ::sigaction(SIGXFSZ, &limit_, nullptr);
    errno = error;
}

bool say_on(int fd, std::string_view text) {
    const SignalsHeld held;
    return write_all(fd, text);
}

void say(const std::string& line) { say_on(STDERR_FILENO, "mp-trace: " + printable(line) + "\n"); }

void say_text(const std::string& text) {
    std::string out;
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        out += "mp-trace:     " + printable(rest.substr(0, end)) + "\n";
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    say_on(STDERR_FILENO, out);
}

void say_state(const std::string& state) {
    constexpr std::size_t kWidth = 78;
    std::string line = "\r\033[K";
    if (!state.empty()) line += ("mp-trace: " + printable(state)).substr(0, kWidth);
    say_on(STDERR_FILENO, line);
}

}  // namespace mp::launch
