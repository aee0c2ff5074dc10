#include "kernels/base/reports/sarif.hpp"

#include <utility>

#include "kernels/base/percent_encoding.hpp"

namespace mp::sarif {

Json run_of(std::string_view tool, Json driver) {
    Json run;
    run["tool"]["driver"] = std::move(driver);
    run["columnKind"] = "unicodeCodePoints";
    run["automationDetails"] = {{"id", std::string(tool) + "/"}};
    return run;
}

Json log_of(Json run) {
    Json log;
    log["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
    log["version"] = "2.1.0";
    log["runs"] = Json::array({std::move(run)});
    return log;
}

Json artifact(std::string_view path) {
    if (path.starts_with('/')) return {{"uri", "file://" + percent_encoded(path)}};
    return {{"uri", percent_encoded(path)}, {"uriBaseId", kRoot}};
}

std::string message(const std::string& text, const std::string& fix) {
    return fix.empty() ? text : text + ". Fix: " + fix;
}

Json tags() { return {{"tags", {"mixed-precision", "numerics"}}}; }

Json notification(std::string_view level, std::string_view text) {
    return {{"level", level}, {"message", {{"text", text}}}};
}

Json invocation(bool successful, Json notifications) {
    Json out = {{"executionSuccessful", successful}};
    if (!notifications.empty()) out["toolExecutionNotifications"] = std::move(notifications);
    return out;
}

std::string written(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace mp::sarif
