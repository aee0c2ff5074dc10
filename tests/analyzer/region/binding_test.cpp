// One program of both languages: Python calls what C++ exports.

#include "tests/analyzer/region/linked.hpp"

namespace mp::lint {
namespace {

std::string extension(std::string_view exporter, std::string_view call) {
    return "unit ext.cpp\n  func 1:1 my_exp usr=my_exp params=[{tensor name=x}]\n"
           "    call 2:3 at::exp op=exp args=[{tensor param=0}]\n  func 5:1 " +
           std::string(exporter) + "\n    call 6:3 " + std::string(call) + " lambdas=[my_exp]\n";
}

// A region around one call.
std::string program(std::string_view call) {
    return "unit a.py language=python\n  func 1:1 a.f kind=python params=[{other name=x}]\n"
           "    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
           "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0}]\n"
           "    call 3:3 " +
           std::string(call) + "\n";
}

std::string in_extension(const std::string& cpp, std::string_view call) {
    return states(linked({cpp, program(call)}), "my_exp", 0);
}

const std::string kNamed = extension("pybind11_init_fast",
                                     "pybind11::module_::def kind=method args=[{object} {array int8 "
                                     "text=\"\\\"exp_op\\\"\"} {pointer}]");

TEST(Bindings, APybindModuleIsFoundByItsName) {
    EXPECT_EQ(in_extension(kNamed, "fast.exp_op args=[{other param=0}]"), "on:fp16");
    EXPECT_EQ(in_extension(kNamed, "pkg.fast.exp_op callee=pkg.fast.exp_op"), "on:fp16");
    EXPECT_EQ(in_extension(kNamed, "slow.exp_op"), "off");
    EXPECT_EQ(in_extension(kNamed, "fast.log_op"), "off");
}

TEST(Bindings, AModuleNamedByTheBuildIsFoundByWhatItExports) {
    const std::string cpp =
        extension("pybind11_init_TORCH_EXTENSION_NAME",
                  "pybind11::module_::def kind=method args=[{object} {array int8 text=\"\\\"exp_op\\\"\"}]");
    EXPECT_EQ(in_extension(cpp, "_backend.exp_op"), "on:fp16");
    EXPECT_EQ(in_extension(cpp, "torch.exp_op"), "off") << "a library's own";
    EXPECT_EQ(in_extension(cpp, "?.exp_op kind=method args=[{other param=0}]"), "off")
        << "a method of nobody knows what";
}

TEST(Bindings, AModuleNamedByTheBuildMayHaveTheNameOfItsFile) {
    // Two modules offer an exp_op: only the file says which one is meant.
    const auto module = [](std::string_view file, std::string_view function) {
        return "unit " + std::string(file) + "\n  func 1:1 " + std::string(function) +
               " usr=" + std::string(function) +
               " params=[{tensor name=x}]\n    call 2:3 at::exp op=exp args=[{tensor param=0}]\n"
               "  func 5:1 pybind11_init_mp_extension\n"
               "    call 6:3 pybind11::module_::def kind=method args=[{object} {array int8 "
               "text=\"\\\"exp_op\\\"\"}] lambdas=[" +
               std::string(function) + "]\n";
    };
    const Program p = linked({module("csrc/fast.cpp", "fast_exp"), module("csrc/slow.cpp", "slow_exp"),
                              program("pkg.fast.exp_op args=[{other param=0}]")});
    EXPECT_EQ(states(p, "fast_exp", 0), "on:fp16");
    EXPECT_EQ(states(p, "slow_exp", 0), "off");
}

TEST(Bindings, AMethodIsOfferedAndNotCalled) {
    const Program p = linked({extension("pybind11_init_fast",
                                        "pybind11::class_::def kind=method args=[{object} {array int8 "
                                        "text=\"\\\"run\\\"\"}]"),
                              program("torch.relu")});
    const Function& registers = function_named(p, "pybind11_init_fast");
    EXPECT_TRUE(registers.calls[0].lambdas.empty());
}

TEST(Bindings, AHelperOfAModuleOffersFunctionsToo) {
    const std::string cpp =
        extension("init_ops",
                  "pybind11::module_::def kind=method args=[{object} {array int8 text=\"\\\"exp_op\\\"\"}]");
    EXPECT_EQ(in_extension(cpp, "_backend.exp_op"), "on:fp16");
}

TEST(Bindings, TorchLibrariesAreFoundThroughTorchOps) {
    for (const std::string_view exporter :
         {"TORCH_LIBRARY_init_my_ops", "TORCH_LIBRARY_IMPL_init_my_ops_CUDA_12", "mp_library_lib_my_ops",
          "mp_library_CUDA_my_ops"}) {
        const std::string cpp = extension(exporter,
                                          "torch::Library::impl kind=method args=[{object} {pointer int8 "
                                          "text=\"\\\"exp_op(Tensor x) -> Tensor\\\"\"}]");
        EXPECT_EQ(in_extension(cpp, "torch.ops.my_ops.exp_op"), "on:fp16") << exporter;
        EXPECT_EQ(in_extension(cpp, "torch.ops.my_ops.exp_op.default"), "on:fp16") << exporter;
        EXPECT_EQ(in_extension(cpp, "torch.ops.other.exp_op"), "off") << exporter;
    }
}

TEST(Bindings, ALoadedExtensionIsFoundByTheNameGivenToLoad) {
    const std::string python =
        "unit a.py language=python\n  func 1:1 a.f kind=python params=[{other name=x}]\n"
        "    call 1:6 torch.utils.cpp_extension.load args=[{object constant=\"'fast'\" "
        "keyword=name}]\n"
        "    call 2:6 torch.cuda.amp.autocast kind=constructor\n"
        "    call 2:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=1}]\n"
        "    call 3:3 ?.exp_op kind=method args=[{other call=0} {fp16 tensor}]\n";
    const Program p = linked({kNamed, python});
    EXPECT_EQ(states(p, "my_exp", 0), "on:fp16");
    const Function& f = function_named(p, "my_exp");
    EXPECT_EQ(p.dtype_of(f, f.calls[0].args[0]).dtype, DType::fp16) << "behind the receiver";
}

TEST(Bindings, FunctionsUseWhatTheirFileLoads) {
    const auto python = [](const std::string& loads) {
        return "unit a.py language=python\n  func 1:1 a.<module> kind=python\n    call 1:6 " + loads +
               " args=[{object constant=\"'fast'\" keyword=name}]\n    define 1:1 a.ext value.call=0\n"
               "  func 5:1 a.f kind=python params=[{other name=x}]\n"
               "    call 6:6 torch.cuda.amp.autocast kind=constructor\n"
               "    call 6:6 torch.cuda.amp.autocast.__enter__ kind=method args=[{object call=0}]\n"
               "    call 7:3 ?.exp_op kind=method args=[{other name=ext} {fp16 tensor}]\n";
    };
    const std::string load = "torch.utils.cpp_extension.load";
    EXPECT_EQ(states(linked({kNamed, python(load)}), "my_exp", 0), "on:fp16");
    EXPECT_EQ(states(linked({kNamed, python("other.load")}), "my_exp", 0), "off");
}

}  // namespace
}  // namespace mp::lint
