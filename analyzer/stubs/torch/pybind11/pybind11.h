// Bindings: enough to read the module definitions of extensions.
#pragma once

#include <string>
#include <vector>

#ifndef MP_NO_BODY
// A body that says nothing: a template called with a lambda of internal linkage must be defined here.
#define MP_NO_BODY { __builtin_trap(); }
#endif
namespace pybind11 {
struct object { template <class T> T cast() const; template <class... A> object operator()(A&&...) const; object attr(const char*) const; };
struct handle : object {};
struct dict : object { object operator[](const char*) const; };
struct list : object {};
struct str : object { str(const char*); };
struct arg {
    explicit arg(const char*);
    template <class T> arg operator=(T&&);
};
template <class T> struct call_guard {};
struct gil_scoped_release { gil_scoped_release(); };
struct gil_scoped_acquire { gil_scoped_acquire(); };
struct scoped_interpreter { scoped_interpreter(); };
template <class... A> struct init_mp {};
template <class... A> init_mp<A...> init();
struct module_ : object {
    template <class F, class... A> module_& def(const char*, F&&, const A&...) MP_NO_BODY
    const char*& doc();
    static module_ import(const char*);
    module_ def_submodule(const char*, const char* = nullptr);
};
using module = module_;
template <class T, class... B> struct class_ : object {
    class_(object, const char*);
    template <class... A> class_& def(A&&...) MP_NO_BODY
    template <class... A> class_& def_readwrite(A&&...) MP_NO_BODY
    template <class... A> class_& def_readonly(A&&...) MP_NO_BODY
    template <class... A> class_& def_property_readonly(A&&...) MP_NO_BODY
};
template <class T> struct enum_ : object { enum_(object, const char*); enum_& value(const char*,
    T); enum_& export_values(); };
void exec(const char*);
namespace literals { arg operator""_a(const char*, size_t); }
}  // namespace pybind11
#define MP_PYBIND_MODULE(name, m) \
    static void pybind11_init_##name(pybind11::module_&); \
    extern "C" void* mp_pybind_init(); \
    void pybind11_init_##name(pybind11::module_& m)
#define PYBIND11_MODULE(name, m) MP_PYBIND_MODULE(name, m)
#define PYBIND11_EMBEDDED_MODULE(name, m) static void pybind11_init_##name(pybind11::module_& m)
#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME mp_extension
#endif
