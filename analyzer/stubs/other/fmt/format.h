// The fmt library, as far as messages are made with it.
#pragma once

#include <string>

namespace fmt {
template <class T> T runtime(const T&);
template <class S, class... A> std::string format(const S&, A&&...);
template <class... A> void print(const char*, A&&...);
template <class I> std::string join(const I&, const char*);
namespace literals {
template <class T> struct mp_named { T value; };
struct mp_arg { template <class T> mp_named<T> operator=(const T&) const; };
mp_arg operator""_a(const char*, __SIZE_TYPE__);
}  // namespace literals
}  // namespace fmt
