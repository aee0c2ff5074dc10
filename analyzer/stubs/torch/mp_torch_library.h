// How extensions register: TORCH_LIBRARY, pybind11.
#pragma once

#include "mp_torch_nn.h"

namespace torch {
struct CppFunction {
    template <typename F> CppFunction(F&&);
    static CppFunction makeFallthrough();
};
class Library {
public:
    template <typename... A> Library& def(A&&...);
    template <typename... A> Library& impl(A&&...);
    template <typename... A> Library& fallback(A&&...);
};
template <typename... A> CppFunction dispatch(A&&...);
}  // namespace torch
#define MP_TORCH_JOIN_(a, b) a##b
#define MP_TORCH_JOIN(a, b) MP_TORCH_JOIN_(a, b)
#define TORCH_LIBRARY(ns, m) static void MP_TORCH_JOIN(mp_library_##ns##_, __LINE__)(torch::Library& m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) TORCH_LIBRARY(ns, m)
#define TORCH_LIBRARY_IMPL(ns, key, m) static void MP_TORCH_JOIN(mp_library_##ns##_##key##_, __LINE__)(torch::Library& m)
#define TORCH_FN(f) f
#define TORCH_SELECTIVE_NAME(n) n
#define REGISTER_EXTENSION(name)

namespace pybind11 {
struct arg {
    explicit arg(const char*);
    template <typename T> arg operator=(T&&) const;
};
struct none {};
struct object {};
struct module_ {
    template <typename... A> module_& def(A&&...);
    template <typename... A> module_ def_submodule(A&&...);
    std::string& doc();
    template <typename... A> object attr(A&&...);
};
using module = module_;
struct gil_scoped_release {
    gil_scoped_release();
    ~gil_scoped_release();
};
template <typename T> struct call_guard {};
template <typename... A> struct init {};
template <typename T, typename... O> class class_ {
public:
    template <typename... A> class_(A&&...);
    template <typename... A> class_& def(A&&...);
    template <typename... A> class_& def_readwrite(A&&...);
    template <typename... A> class_& def_readonly(A&&...);
    template <typename... A> class_& def_static(A&&...);
};
}  // namespace pybind11
namespace py = pybind11;
#define PYBIND11_MODULE(name, m) static void MP_TORCH_JOIN(mp_pybind_, __LINE__)(pybind11::module_& m)
#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME extension
#endif
