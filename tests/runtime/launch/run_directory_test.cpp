#include "runtime/launch/run_directory.hpp"

#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/runtime/launch/temporary_directory.hpp"

namespace mp::launch {
namespace {

using testing::HasSubstr;

class Runs : public TemporaryDirectory {
protected:
    static trace::Identity somebody() {
        trace::Identity id;
        id.host = "node/1";
        id.pid = 77;
        return id;
    }
};

TEST(DefaultName, IsSharedInsideALauncher) {
    trace::Identity id;
    EXPECT_EQ(default_run_directory(id, 5), "mp-trace.%p");
    id.job = "99";
    EXPECT_EQ(default_run_directory(id, 5), "mp-trace.%p") << "a shell of a batch job starts many runs";
    id.launcher = "srun";
    EXPECT_EQ(default_run_directory(id, 5), "mp-trace.%j");
    id.job.clear();
    EXPECT_EQ(default_run_directory(id, 5), "mp-trace.5");
}

TEST_F(Runs, AreMadeForTheirOwnerOnly) {
    const auto made = make_run_directory(path("run"), false);
    ASSERT_TRUE(made);
    EXPECT_TRUE(made->created);
    struct stat info{};
    ASSERT_EQ(::stat(made->path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0700u);
}

TEST_F(Runs, NeverOverwriteOneAnother) {
    write("run/recording", "x");
    EXPECT_EQ(make_run_directory(path("run"), false)->path, path("run.2"));
    write("run.2/recording", "x");
    EXPECT_EQ(make_run_directory(path("run/"), false)->path, path("run.3"));
    EXPECT_EQ(content_of(path("run/recording")), "x");
}

TEST_F(Runs, TakeAnEmptyDirectoryAsItIs) {
    std::filesystem::create_directory(path("run"));
    const auto made = make_run_directory(path("run"), false);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->path, path("run"));
    EXPECT_FALSE(made->created) << "not ours to remove";
}

TEST_F(Runs, AreSharedByTheRanksOfALauncher) {
    std::vector<std::thread> ranks;
    std::vector<std::string> paths(16);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        ranks.emplace_back([&, i] {
            const auto made = make_run_directory(path("run"), true);
            trace::Identity id = somebody();
            id.pid = static_cast<std::int64_t>(i);
            if (made && write_options_file(made->path, id, {})) paths[i] = made->path;
        });
    }
    for (std::thread& rank : ranks) rank.join();
    for (const std::string& made : paths) EXPECT_EQ(made, path("run"));
    EXPECT_FALSE(std::filesystem::exists(path("run.2")));
}

TEST_F(Runs, OutsideALauncherGetTheirOwnEvenAtOnce) {
    write("run/old", "x");
    std::vector<std::thread> threads;
    std::vector<std::string> paths(16);
    for (std::size_t i = 0; i < paths.size(); ++i) {
        threads.emplace_back([&, i] {
            const auto made = make_run_directory(path("run"), false);
            if (!made) return;
            paths[i] = made->path;
            write("run." + std::to_string(i) + ".mark", "");
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& made : paths) EXPECT_NE(made, "");
    EXPECT_EQ(content_of(path("run/old")), "x");
}

TEST_F(Runs, RefuseWhatIsNoDirectoryOfOurs) {
    write("file", "x");
    for (const bool shared : {false, true}) {
        EXPECT_THAT(make_run_directory(path("file"), shared).error().message, HasSubstr("not a directory"));
        EXPECT_FALSE(check_run_directory(path("file"), shared));
        EXPECT_FALSE(make_run_directory(path("file/x"), shared));
        EXPECT_THAT(make_run_directory(path("no/such/run"), shared).error().hint, HasSubstr("mkdir -p"));
        EXPECT_FALSE(check_run_directory(path("no/such/run"), shared));
    }
    std::filesystem::create_directory(path("target"));
    std::filesystem::create_directory_symlink(path("target"), path("link"));
    EXPECT_THAT(make_run_directory(path("link"), true).error().message, HasSubstr("symbolic link"));
    EXPECT_FALSE(make_run_directory(path(std::string(300, 'x')), false));
    EXPECT_TRUE(check_run_directory(path("new"), true));
    EXPECT_FALSE(std::filesystem::exists(path("new"))) << "a check makes nothing";
}

TEST_F(Runs, OptionsFilesAreUniqueAndReadBack) {
    trace::Options options;
    options.run_dir = path("a:b\n\\c");
    options.adapters = {"/x:y", "/z"};
    const auto first = write_options_file(path(), somebody(), options);
    const auto second = write_options_file(path(), somebody(), options);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(*first, path("options.node_1.77"));
    EXPECT_EQ(*second, path("options.node_1.77.2"));
    const auto read = trace::read_options(*second);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->run_dir, options.run_dir);
    EXPECT_EQ(read->adapters, options.adapters);
}

TEST_F(Runs, OptionsThatThePreloadCouldNotReadAreRefused) {
    trace::Options options;
    options.save_twin = std::string(70000, 'x');
    EXPECT_FALSE(write_options_file(path(), somebody(), options));
    EXPECT_TRUE(std::filesystem::is_empty(path()));
}

TEST_F(Runs, AreTakenBackAsFarAsNobodyUsesThem) {
    const auto made = make_run_directory(path("run"), true);
    const auto file = write_options_file(made->path, somebody(), {});
    write("run/of-another-rank", "x");
    remove_run(*made, *file);
    EXPECT_FALSE(std::filesystem::exists(*file));
    EXPECT_TRUE(std::filesystem::exists(path("run/of-another-rank")));
    std::filesystem::remove(path("run/of-another-rank"));
    remove_run(*made, {});
    EXPECT_FALSE(std::filesystem::exists(path("run")));
}

}  // namespace
}  // namespace mp::launch
