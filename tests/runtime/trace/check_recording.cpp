// One line for each file: what kill_test.py and limits_test.py want to know about it.
//   steps FIRST LAST CONTIGUOUS TENSORS notes N lossy N problems N torn N process 0|1
#include <cstdio>
#include <string_view>

#include "runtime/trace/reader.hpp"

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const auto r = mp::trace::read_recording(argv[i]);
        if (!r) {
            std::printf("unreadable %s\n", r.error().message.c_str());
            continue;
        }
        bool contiguous = true;
        std::size_t tensors = 0, lossy = 0, torn = 0;
        for (std::size_t k = 0; k < r->steps.size(); ++k) {
            contiguous &= r->steps[k].step.value == static_cast<std::int64_t>(k);
            tensors += r->steps[k].tensors.size();
        }
        for (const auto& note : r->notes) lossy += note.kind == mp::trace::NoteKind::lossy;
        for (const auto& problem : r->problems) torn += problem.offset + problem.bytes_lost == r->bytes;
        std::printf("steps %lld %lld %d %zu notes %zu lossy %zu problems %zu torn %zu process %d\n",
                    r->steps.empty() ? -1LL : static_cast<long long>(r->steps.front().step.value),
                    r->steps.empty() ? -1LL : static_cast<long long>(r->steps.back().step.value), contiguous,
                    tensors, r->notes.size(), lossy, r->problems.size(), torn, r->has_process);
    }
}
