#include "ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace zero1 {
namespace {

void write_id(const std::string& path, const ncclUniqueId& id) {
    const std::string draft = path + ".draft";
    std::FILE* const file = std::fopen(draft.c_str(), "wb");
    if (!file || std::fwrite(&id, sizeof id, 1, file) != 1 || std::fclose(file) != 0) fail("fopen", draft.c_str());
    if (std::rename(draft.c_str(), path.c_str()) != 0) fail("rename", path.c_str());
}

ncclUniqueId read_id(const std::string& path) {
    ncclUniqueId id;
    for (int i = 0; i < 6000; ++i) {
        if (std::FILE* const file = std::fopen(path.c_str(), "rb")) {
            const bool whole = std::fread(&id, sizeof id, 1, file) == 1;
            std::fclose(file);
            if (whole) return id;
        }
        usleep(10000);
    }
    fail("no id of NCCL in", path.c_str());
}

}  // namespace

ncclComm_t meet(const Options& o) {
    ncclUniqueId id;
    if (o.rank == 0) {
        ZERO1_CHECK(ncclGetUniqueId(&id));
        if (o.world > 1) write_id(o.id_file, id);
    } else {
        id = read_id(o.id_file);
    }
    ncclComm_t comm = nullptr;
    ZERO1_CHECK(ncclCommInitRank(&comm, o.world, id, o.rank));
    return comm;
}

int spawn(const Options& o, char** argv) {
    // A new folder: a name made of our process number may have an id that a killed run left, and a rank that reads it
    // waits for ranks that are gone.
    char folder[] = "/tmp/zero1_gpt.XXXXXX";
    if (!mkdtemp(folder)) fail("mkdtemp", folder);
    const std::string id_file = std::string(folder) + "/id";
    std::vector<pid_t> children;
    for (int rank = 0; rank < o.spawn; ++rank) {
        const pid_t child = fork();
        if (child == 0) {
            setenv("RANK", std::to_string(rank).c_str(), 1);
            setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
            setenv("WORLD_SIZE", std::to_string(o.spawn).c_str(), 1);
            setenv("ZERO1_ID_FILE", id_file.c_str(), 1);
            execv("/proc/self/exe", argv);
            _exit(127);
        }
        children.push_back(child);
    }
    int failure = 0;
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        if (failure == 0 && status != 0) failure = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    unlink(id_file.c_str());
    rmdir(folder);
    return failure;
}

}  // namespace zero1
