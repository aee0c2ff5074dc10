// AT_DISPATCH_*: one lambda per element type, each with its own scalar_t, as in PyTorch, so that kernels
// are instantiated for the types a program really dispatches to.
#pragma once

#include "mp_torch_tensor.h"

namespace detail {
inline at::ScalarType scalar_type(at::ScalarType s) { return s; }
inline at::ScalarType scalar_type(const at::DeprecatedTypeProperties& t) { return t.scalarType(); }
}  // namespace detail
namespace c10::impl {
template <ScalarType> struct ScalarTypeToCPPType;
#define MP_SCALAR(S, T) template <> struct ScalarTypeToCPPType<ScalarType::S> { using type = T; };
MP_SCALAR(Byte, uint8_t) MP_SCALAR(Char, int8_t) MP_SCALAR(Short, int16_t) MP_SCALAR(Int, int) MP_SCALAR(Long, int64_t)
MP_SCALAR(Half, ::c10::Half) MP_SCALAR(Float, float) MP_SCALAR(Double, double) MP_SCALAR(Bool, bool)
MP_SCALAR(BFloat16, ::c10::BFloat16) MP_SCALAR(ComplexFloat, ::c10::complex<float>)
MP_SCALAR(ComplexDouble, ::c10::complex<double>) MP_SCALAR(Float8_e4m3fn, ::c10::Float8_e4m3fn)
MP_SCALAR(Float8_e5m2, ::c10::Float8_e5m2) MP_SCALAR(UInt16, uint16_t) MP_SCALAR(UInt32, uint32_t)
MP_SCALAR(UInt64, uint64_t)
#undef MP_SCALAR
template <ScalarType S> using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<S>::type;
}  // namespace c10::impl

#define AT_PRIVATE_CASE_TYPE_USING_HINT(S, HINT, ...)                                    \
    case S: {                                                                            \
        using HINT [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<S>;              \
        return __VA_ARGS__();                                                            \
    }
#define AT_DISPATCH_CASE(S, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(S, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                              \
    [&] {                                                                                \
        const auto& mp_type = TYPE;                                                      \
        switch (::detail::scalar_type(mp_type)) {                                        \
            __VA_ARGS__                                                                  \
            default: AT_ERROR(NAME, " is not implemented for this type");                \
        }                                                                                \
    }()

#define MP_FLOATING_CASES(...)                              \
    AT_DISPATCH_CASE(at::ScalarType::Double, __VA_ARGS__)   \
    AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)
#define MP_INTEGRAL_CASES(...)                              \
    AT_DISPATCH_CASE(at::ScalarType::Byte, __VA_ARGS__)     \
    AT_DISPATCH_CASE(at::ScalarType::Char, __VA_ARGS__)     \
    AT_DISPATCH_CASE(at::ScalarType::Int, __VA_ARGS__)      \
    AT_DISPATCH_CASE(at::ScalarType::Long, __VA_ARGS__)     \
    AT_DISPATCH_CASE(at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) MP_FLOATING_CASES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
    MP_FLOATING_CASES(__VA_ARGS__) AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND(S1, ...) \
    MP_FLOATING_CASES(__VA_ARGS__) AT_DISPATCH_CASE(S1, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND2(S1, S2, ...) \
    AT_DISPATCH_CASE_FLOATING_TYPES_AND(S1, __VA_ARGS__) AT_DISPATCH_CASE(S2, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)      \
    AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__)   \
    AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...) MP_INTEGRAL_CASES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) MP_INTEGRAL_CASES(__VA_ARGS__) MP_FLOATING_CASES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, MP_FLOATING_CASES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(T, N, ...) \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(S1, T, N, ...) \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND(S1, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(S1, S2, T, N, ...) \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(S1, S2, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND3(S1, S2, S3, T, N, ...)                           \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_FLOATING_TYPES_AND2(S1, S2, __VA_ARGS__)   \
                                 AT_DISPATCH_CASE(S3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(S1, S2, T, N, ...) \
    AT_DISPATCH_FLOATING_TYPES_AND2(S1, S2, T, N, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(T, N, ...) \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, MP_INTEGRAL_CASES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(T, N, ...) AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(T, N, ...) AT_DISPATCH_ALL_TYPES_AND(at::ScalarType::Half, T, N, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(S1, T, N, ...) \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(S1, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(S1, S2, T, N, ...)                                               \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(S1, __VA_ARGS__) \
                                 AT_DISPATCH_CASE(S2, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(S1, S2, S3, T, N, ...)                                           \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(S1, __VA_ARGS__) \
                                 AT_DISPATCH_CASE(S2, __VA_ARGS__) AT_DISPATCH_CASE(S3, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(S1, S2, T, N, ...) \
    AT_DISPATCH_ALL_TYPES_AND2(S1, S2, T, N, __VA_ARGS__)
#define AT_DISPATCH_INDEX_CASE(S, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(S, index_t, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(T, N, ...)                                              \
    AT_DISPATCH_SWITCH(T, N, AT_DISPATCH_INDEX_CASE(at::ScalarType::Int, __VA_ARGS__)   \
                                 AT_DISPATCH_INDEX_CASE(at::ScalarType::Long, __VA_ARGS__))

// The newer form: AT_DISPATCH_V2(type, "name", AT_WRAP([&] { ... }), AT_EXPAND(AT_FLOATING_TYPES), kHalf).
#define AT_WRAP(...) __VA_ARGS__
#define AT_EXPAND(X) X
#define AT_FLOATING_TYPES c10::kDouble, c10::kFloat
#define AT_INTEGRAL_TYPES c10::kByte, c10::kChar, c10::kInt, c10::kLong, c10::kShort
#define AT_ALL_TYPES AT_EXPAND(AT_INTEGRAL_TYPES), AT_EXPAND(AT_FLOATING_TYPES)
#define MP_V2_AGAIN ()
#define MP_V2_REPEAT(...) MP_V2_4(MP_V2_4(MP_V2_4(__VA_ARGS__)))
#define MP_V2_4(...) MP_V2_3(MP_V2_3(__VA_ARGS__))
#define MP_V2_3(...) MP_V2_2(MP_V2_2(__VA_ARGS__))
#define MP_V2_2(...) __VA_ARGS__
#define MP_V2_CASES(BODY, ...) __VA_OPT__(MP_V2_REPEAT(MP_V2_ONE(BODY, __VA_ARGS__)))
#define MP_V2_ONE(BODY, S, ...) \
    AT_DISPATCH_CASE(S, MP_V2_UNWRAP BODY) __VA_OPT__(MP_V2_NEXT MP_V2_AGAIN (BODY, __VA_ARGS__))
#define MP_V2_NEXT() MP_V2_ONE
#define MP_V2_UNWRAP(...) __VA_ARGS__
#define AT_DISPATCH_V2(TYPE, NAME, BODY, ...) \
    AT_DISPATCH_SWITCH(TYPE, NAME, MP_V2_CASES((AT_WRAP(BODY)), __VA_ARGS__))
