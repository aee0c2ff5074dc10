#include <gmock/gmock.h>

#include "tests/analyzer/clang/facts_fixture.hpp"

namespace mp::lint {
namespace {

Parameter parameter(const std::string& type, const std::string& before = "") {
    const Unit unit = facts_of(before + "\nvoid probe(" + type + " p) { }\n");
    for (const Function& f : unit.functions)
        if (f.name.str() == "probe") return f.params.at(0);
    return {};
}

void expect(const std::string& type, DType dtype, Shape shape, const std::string& before = "") {
    const Parameter p = parameter(type, before);
    EXPECT_EQ(p.dtype, dtype) << type << " is " << name_of(p.dtype);
    EXPECT_EQ(p.shape, shape) << type;
}

TEST(Types, HalfClassesAreKnownByTheirCanonicalName) {
    expect("__half", DType::fp16, Shape::scalar);
    expect("half", DType::fp16, Shape::scalar);
    expect("const __half&", DType::fp16, Shape::scalar);
    expect("__half2", DType::fp16, Shape::vec);
    expect("__half_raw", DType::fp16, Shape::scalar);
    expect("__nv_bfloat16*", DType::bf16, Shape::pointer);
    expect("__nv_fp8_e4m3", DType::e4m3, Shape::scalar);
    expect("c10::Half", DType::fp16, Shape::scalar);
    expect("at::Half", DType::fp16, Shape::scalar);
    expect("c10::BFloat16**", DType::bf16, Shape::pointer);
    expect("cutlass::half_t", DType::fp16, Shape::scalar);
    expect("_Float16", DType::fp16, Shape::scalar);
}

TEST(Types, TypedefsAndMacroSwitchesAreSeenThrough) {
    expect("floatX*", DType::bf16, Shape::pointer,
           "#define LOW 1\n#if LOW\ntypedef __nv_bfloat16 floatX;\n#else\ntypedef float floatX;\n#endif");
    expect("Pick<true>::type", DType::fp16, Shape::scalar,
           "template <bool B> struct Pick { using type = float; }; template <> struct Pick<true> { using "
           "type = half; };");
}

TEST(Types, AClassOfTheSameNameElsewhereIsAnObject) {
    expect("mine::__half", DType::unknown, Shape::object, "namespace mine { struct __half { float f; }; }");
    expect("mine::Half", DType::unknown, Shape::object, "namespace mine { struct Half { float f; }; }");
    expect("Wrapper", DType::unknown, Shape::object, "struct Wrapper { __half h; };");
}

TEST(Types, AVectorOfHalvesThatCanBeAddedIsOne) {
    expect("Own", DType::fp16, Shape::vec, "struct Own { __half2 x, y; Own& operator+=(const Own&); };");
    expect("Free", DType::fp16, Shape::vec,
           "struct Free { __half v[8]; }; Free operator+(Free, const Free&);");
    expect("T<4>", DType::fp16, Shape::vec,
           "template <int N> struct T { __half v[N]; }; template <int N> T<N> operator+(const T<N>&, T<N>);");
    expect("Other", DType::unknown, Shape::object,
           "struct B {}; struct Other { __half v[8]; }; B operator+(B, B);");
    expect("Mixed", DType::unknown, Shape::object,
           "struct Mixed { __half x; float y; Mixed operator+(const Mixed&); };");
    expect("Node", DType::unknown, Shape::object,
           "struct Node { Node* next; __half v; Node operator+(int); };");
    expect("Row*", DType::unknown, Shape::pointer, "struct Row { Row* all[2]; Row operator+(int); };");
    expect("Held", DType::unknown, Shape::object, "struct Held { __half* p; Held operator+(int); };");
}

TEST(Types, BuiltinsPointersArraysAndVectors) {
    expect("float", DType::fp32, Shape::scalar);
    expect("const double*", DType::fp64, Shape::pointer);
    expect("Row&", DType::fp32, Shape::array, "typedef float Row[4];");
    expect("unsigned char", DType::uint8, Shape::scalar);
    expect("unsigned long", DType::uint64, Shape::scalar);
    expect("bool", DType::boolean, Shape::scalar);
    expect("float2", DType::fp32, Shape::vec);
    expect("int4*", DType::int32, Shape::pointer);
    expect("void*", DType::unknown, Shape::pointer);
}

TEST(Types, TensorsAndTheirOptions) {
    expect("const at::Tensor&", DType::unknown, Shape::tensor);
    expect("torch::Tensor", DType::unknown, Shape::tensor);
    expect("torch::TensorOptions", DType::unknown, Shape::options);
}

TEST(Types, AccumulatorFragmentsAndElementAliasesAreTypeUses) {
    const Unit unit = facts_of(
        "template <bool F> struct Choose { using type = half; }; "
        "template <> struct Choose<true> { using type = float; };\n"
        "template <class T> __global__ void k(T*) { "
        "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, T> c[2]; }\n"
        "struct Config { using ElementAccumulator = cutlass::half_t; using Plain = int; };\n"
        "template <class T> struct Generic { using ElementAccumulator = typename Choose<sizeof(T) == "
        "4>::type; };\n"
        "Generic<half> a; Generic<float> b;\n"
        "void go(half* h, float* f) { k<<<1, 1>>>(h); k<<<1, 1>>>(f); }");
    const Function& half = function_named(unit, "k<__half>");
    ASSERT_EQ(half.types.size(), 1u);
    EXPECT_EQ(half.types[0].name.str(), "nvcuda::wmma::fragment");
    EXPECT_EQ(half.types[0].args.at(0).text.str(), "nvcuda::wmma::accumulator");
    EXPECT_EQ(half.types[0].args.at(1).text.str(), "16");
    EXPECT_EQ(half.types[0].args.at(4).dtype, DType::fp16);
    EXPECT_EQ(function_named(unit, "k<float>").types.at(0).args.at(4).dtype, DType::fp32);
    const Function& config = function_named(unit, "Config");
    ASSERT_EQ(config.types.size(), 1u);
    EXPECT_EQ(config.types[0].alias.str(), "ElementAccumulator");
    EXPECT_EQ(config.types[0].args.at(0).dtype, DType::fp16);
    EXPECT_EQ(function_named(unit, "Generic<__half>").types.at(0).args.at(0).dtype, DType::fp16);
    EXPECT_EQ(function_named(unit, "Generic<float>").types.at(0).args.at(0).dtype, DType::fp32);
}

}  // namespace
}  // namespace mp::lint
