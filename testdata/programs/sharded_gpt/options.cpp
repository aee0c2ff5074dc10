#include "options.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace sharded {
namespace {

int from_environment(const char* torchrun, const char* openmpi, int otherwise) {
    for (const char* name : {torchrun, openmpi})
        if (const char* value = std::getenv(name)) return std::atoi(value);
    return otherwise;
}

std::set<int> numbers(const std::string& list) {
    std::set<int> found;
    std::stringstream stream(list);
    for (std::string one; std::getline(stream, one, ',');) found.insert(std::stoi(one));
    return found;
}

}  // namespace

Options parse(int argc, char** argv) {
    Options o;
    o.text = SHARDED_GPT_TEXT;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (i + 1 == argc) throw std::runtime_error(name + " needs a value, or is unknown");
        const std::string value = argv[++i];
        if (name == "--precision") o.precision = value;
        else if (name == "--half-head") o.half_head = std::stoi(value);
        else if (name == "--steps") o.steps = std::stoi(value);
        else if (name == "--seed") o.seed = std::stoi(value);
        else if (name == "--inject-overflow") o.inject_overflow = std::stoi(value);
        else if (name == "--skip-steps") o.skips = numbers(value);
        else if (name == "--scale") o.scale = std::stod(value);
        else if (name == "--spawn") o.spawn = std::stoi(value);
        else if (name == "--text") o.text = value;
        else if (name == "--store") o.store = value;
        else if (name == "--save") o.save = value;
        else if (name == "--rank") o.rank = std::stoi(value), o.started = true;
        else if (name == "--world") o.world = std::stoi(value);
        else throw std::runtime_error("unknown option " + name);
    }
    if (o.precision != "bf16" && o.precision != "fp16" && o.precision != "fp32")
        throw std::runtime_error("--precision is bf16, fp16 or fp32");
    o.started |= std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK");
    o.rank = from_environment("RANK", "OMPI_COMM_WORLD_RANK", o.rank);
    o.world = from_environment("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", o.world);
    if (const char* store = std::getenv("SHARDED_GPT_STORE")) o.store = store;
    if (o.store.empty()) {
        if (o.started && o.world > 1) throw std::runtime_error("--store FILE is how the ranks find each other");
        o.store = (std::filesystem::temp_directory_path() / ("sharded_gpt." + std::to_string(getpid()))).string();
    }
    return o;
}

std::string with_rank(const std::string& pattern, int rank) {
    const std::size_t key = pattern.find("%r");
    return key == std::string::npos ? pattern : pattern.substr(0, key) + std::to_string(rank) + pattern.substr(key + 2);
}

}  // namespace sharded
