#include "runtime/report/page.hpp"

#include "embedded_report_page.hpp"

namespace mp::trace {

std::string html_page(const RunModel& model, const Judgement& judgement) {
    constexpr std::string_view kMarker = "@DATA@";
    const std::string_view shell = embedded_report_page("page_shell.html");
    const std::size_t at = shell.find(kMarker);
    std::string out(shell.substr(0, at));
    out += script_json(page_data(model, judgement));
    out += shell.substr(at + kMarker.size());
    return out;
}

}  // namespace mp::trace
