#include "runtime/launch/say.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "runtime/launch/words.hpp"

namespace mp::launch {

bool say_on(int fd, std::string_view text) {
    struct sigaction ignore{}, pipe{}, limit{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe);
    ::sigaction(SIGXFSZ, &ignore, &limit);
    while (!text.empty()) {
        const ssize_t put = ::write(fd, text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) break;
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    // An ignored signal would stay ignored in the program: exec hands that on.
    const int error = errno;
    ::sigaction(SIGPIPE, &pipe, nullptr);
    ::sigaction(SIGXFSZ, &limit, nullptr);
    errno = error;
    return text.empty();
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
