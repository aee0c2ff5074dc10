#include "kernels/numerics/layer_path.hpp"

#include <algorithm>
#include <string>

namespace mp {
namespace {

std::string normal_form(std::string_view dotted) {
    std::string path;
    while (!dotted.empty()) {
        const std::string_view part = dotted.substr(0, dotted.find('.'));
        dotted.remove_prefix(std::min(part.size() + 1, dotted.size()));
        if (part.empty()) continue;
        if (!path.empty()) path += '.';
        path += part;
    }
    return path;
}

}  // namespace

LayerPath::LayerPath(std::string_view dotted) : path_(normal_form(dotted)) {}

LayerPath LayerPath::parent() const {
    const std::size_t cut = str().rfind('.');
    LayerPath result;
    if (cut != std::string_view::npos) result.path_ = Symbol(str().substr(0, cut));
    return result;
}

std::string_view LayerPath::leaf() const {
    const std::size_t cut = str().rfind('.');
    return cut == std::string_view::npos ? str() : str().substr(cut + 1);
}

int LayerPath::depth() const {
    return is_root() ? 0 : 1 + static_cast<int>(std::ranges::count(str(), '.'));
}

LayerPath LayerPath::append(std::string_view part) const {
    return LayerPath(std::string(str()).append(".").append(part));
}

bool LayerPath::contains(LayerPath other) const {
    if (is_root()) return true;
    const std::string_view mine = str(), theirs = other.str();
    if (!theirs.starts_with(mine)) return false;
    return theirs.size() == mine.size() || theirs[mine.size()] == '.';
}

}  // namespace mp
