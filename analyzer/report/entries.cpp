#include "analyzer/report/entries.hpp"

#include <algorithm>

#include "analyzer/report/display.hpp"

namespace mp::lint {

std::vector<const Finding*> worst_first(const Findings& findings) {
    std::vector<const Finding*> out;
    out.reserve(findings.size());
    for (const Severity s : {Severity::error, Severity::warning, Severity::note}) {
        for (const Finding& f : findings) {
            if (f.severity == s) out.push_back(&f);
        }
    }
    return out;
}

std::string rule_name(const Report& report, std::string_view id) {
    const auto rule = std::ranges::find(report.rules, id, &RuleText::id);
    return std::string(rule == report.rules.end() ? id : rule->name);
}

std::string message_with_fix(const Finding& f) {
    return f.fix.empty() ? f.message : f.message + ". Fix: " + f.fix;
}

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const CodePoint c = decode_utf8(text);
        out += c.valid ? text.substr(0, c.length) : std::string_view("\xef\xbf\xbd");
        text.remove_prefix(c.length);
    }
    return out;
}

std::string xml_escaped(std::string_view text) {
    std::string shown = escape_controls(text);
    // U+FFFE and U+FFFF are not characters of XML; they begin with the same two bytes.
    for (std::size_t at = shown.find("\xef\xbf"); at != std::string::npos;
         at = shown.find("\xef\xbf", at + 1)) {
        if (shown[at + 2] == '\xbe' || shown[at + 2] == '\xbf') shown[at + 2] = '\xbd';
    }
    std::string out;
    for (const char c : shown) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&apos;";
                break;
            default:
                out += c;
        }
    }
    return out;
}

std::string markdown_escaped(std::string_view text) {
    std::string out;
    for (const char c : escape_controls(text)) {
        if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '&') {
            out += "&amp;";
        } else if (c == '@') {
            out += "&#64;";
        } else {
            if (std::string_view("\\`*_{}[]()#+!|~$:/-").find(c) != std::string_view::npos) out += '\\';
            out += c;
        }
    }
    return out;
}

std::string counted(std::size_t n, std::string_view what) {
    return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

}  // namespace mp::lint
