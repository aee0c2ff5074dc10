// Containers, iterators and algorithms. The accumulator of a reduction is the type of its initial value.
#pragma once

#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

#include "../cuda_bf16.h"

#define THRUST_VERSION 200700

namespace thrust {

template <class T> class device_ptr;
template <class T> class device_reference {
public:
    MP_HD operator T() const;
    MP_HD device_reference& operator=(const T&);
    MP_HD device_ptr<T> operator&() const;
};
template <class T> class device_ptr {
public:
    typedef T value_type; typedef T element_type; typedef device_reference<T> reference;
    typedef ptrdiff_t difference_type; typedef device_ptr pointer;
    typedef std::random_access_iterator_tag iterator_category;
    MP_HD device_ptr() {}
    MP_HD explicit device_ptr(T*) {}
    MP_HD T* get() const;
    MP_HD reference operator*() const;
    MP_HD reference operator[](ptrdiff_t) const;
    MP_HD device_ptr operator+(ptrdiff_t) const;
    MP_HD device_ptr operator-(ptrdiff_t) const;
    MP_HD ptrdiff_t operator-(device_ptr) const;
    MP_HD device_ptr& operator++();
    MP_HD bool operator!=(device_ptr) const;
    MP_HD bool operator==(device_ptr) const;
};
template <class T> device_ptr<T> device_pointer_cast(T*);
template <class T> device_ptr<T> device_pointer_cast(const device_ptr<T>&);
template <class T> T* raw_pointer_cast(T*);
template <class T> T* raw_pointer_cast(const device_ptr<T>&);
template <class T> device_ptr<T> device_malloc(size_t);
template <class T> void device_free(device_ptr<T>);

template <class T> class host_vector : public std::vector<T> {
public:
    using std::vector<T>::vector;
};
template <class T> class device_vector {
public:
    typedef T value_type; typedef device_ptr<T> iterator; typedef device_ptr<T> pointer;
    device_vector();
    explicit device_vector(size_t);
    device_vector(size_t, const T&);
    device_vector(const host_vector<T>&);
    device_vector(const std::vector<T>&);
    template <class I> device_vector(I, I);
    iterator begin();
    iterator end();
    device_ptr<const T> begin() const;
    device_ptr<const T> end() const;
    device_ptr<T> data();
    device_ptr<const T> data() const;
    size_t size() const;
    bool empty() const;
    void resize(size_t);
    void resize(size_t, const T&);
    void clear();
    device_reference<T> operator[](size_t);
    device_reference<T> front();
    device_reference<T> back();
    operator host_vector<T>() const;
};

namespace cuda {
struct mp_policy { template <class S> mp_policy on(S) const; };
static const mp_policy par = {};
static const mp_policy par_nosync = {};
}  // namespace cuda
static const cuda::mp_policy device = {};
static const cuda::mp_policy host = {};

template <class T = void> struct plus { MP_HD T operator()(const T&, const T&) const; };
template <class T = void> struct minus { MP_HD T operator()(const T&, const T&) const; };
template <class T = void> struct multiplies { MP_HD T operator()(const T&, const T&) const; };
template <class T = void> struct maximum { MP_HD T operator()(const T&, const T&) const; };
template <class T = void> struct minimum { MP_HD T operator()(const T&, const T&) const; };
template <class T = void> struct square { MP_HD T operator()(const T&) const; };
template <class T = void> struct identity { MP_HD const T& operator()(const T&) const; };
template <class T = void> struct negate { MP_HD T operator()(const T&) const; };
template <class T = void> struct logical_or { MP_HD bool operator()(const T&, const T&) const; };
template <class T = void> struct logical_and { MP_HD bool operator()(const T&, const T&) const; };
template <class T = void> struct greater { MP_HD bool operator()(const T&, const T&) const; };
template <class T = void> struct less { MP_HD bool operator()(const T&, const T&) const; };
template <class T = void> struct equal_to { MP_HD bool operator()(const T&, const T&) const; };
#define MP_ANY(name) template <> struct name<void> { \
    template <class A, class B> MP_HD typename std::decay<A>::type operator()(A&&, B&&) const; };
MP_ANY(plus) MP_ANY(minus) MP_ANY(multiplies) MP_ANY(maximum) MP_ANY(minimum)
#undef MP_ANY

template <class T> class counting_iterator {
public:
    typedef T value_type; typedef T reference; typedef ptrdiff_t difference_type; typedef const T* pointer;
    typedef std::random_access_iterator_tag iterator_category;
    MP_HD counting_iterator(T = T()) {}
    MP_HD T operator*() const;
    MP_HD counting_iterator operator+(ptrdiff_t) const;
};
template <class T> counting_iterator<T> make_counting_iterator(T);
template <class F, class I> class transform_iterator {
public:
    typedef typename std::iterator_traits<I>::value_type value_type; typedef value_type reference;
    typedef ptrdiff_t difference_type; typedef void pointer;
    typedef std::random_access_iterator_tag iterator_category;
    MP_HD transform_iterator(I, F);
    MP_HD transform_iterator operator+(ptrdiff_t) const;
};
template <class F, class I> transform_iterator<F, I> make_transform_iterator(I, F) MP_NO_BODY
template <class A, class B> struct pair { A first; B second; };
template <class A, class B> pair<A, B> make_pair(A, B);
template <class... T> class tuple {
public:
    MP_HD tuple();
    MP_HD tuple(const T&...);
};
template <class... T> MP_HD tuple<T...> make_tuple(T...);
template <int N, class... T> MP_HD auto& get(tuple<T...>&);

#define MP_WITH_POLICY(params, result, name, ...) \
    template <params> result name(__VA_ARGS__); \
    template <class P, params> result name(const P&, __VA_ARGS__) MP_NO_BODY
#define MP_C ,
MP_WITH_POLICY(class I MP_C class T, T, reduce, I, I, T)
template <class P, class I, class T, class F,
          class = typename std::enable_if<!std::is_convertible<P, I>::value>::type>
T reduce(const P&, I, I, T, F);
template <class I, class T, class F> T reduce(I, I, T, F) MP_NO_BODY
template <class I> typename std::iterator_traits<I>::value_type reduce(I, I);
template <class I> typename std::iterator_traits<I>::value_type reduce(const cuda::mp_policy&, I, I);
template <class I, class F, class T, class R> T transform_reduce(I, I, F, T, R) MP_NO_BODY
template <class P, class I, class F, class T, class R> T transform_reduce(const P&, I, I, F, T, R) MP_NO_BODY
template <class I, class J, class T> T inner_product(I, I, J, T);
template <class P, class I, class J, class T> T inner_product(const P&, I, I, J, T) MP_NO_BODY
template <class I, class O, class F> O transform(I, I, O, F) MP_NO_BODY
template <class I, class J, class O, class F> O transform(I, I, J, O, F) MP_NO_BODY
template <class I, class O, class F> O transform(const cuda::mp_policy&, I, I, O, F) MP_NO_BODY
template <class I, class J, class O, class F> O transform(const cuda::mp_policy&, I, I, J, O, F) MP_NO_BODY
template <class I, class F> I for_each(I, I, F) MP_NO_BODY
template <class P, class I, class F> I for_each(const P&, I, I, F) MP_NO_BODY
template <class I, class O> O copy(I, I, O);
template <class P, class I, class O> O copy(const P&, I, I, O) MP_NO_BODY
template <class I, class T> void fill(I, I, const T&);
template <class P, class I, class T> void fill(const P&, I, I, const T&) MP_NO_BODY
template <class I, class T> void sequence(I, I, T);
template <class I> void sequence(I, I);
template <class P, class I> void sequence(const P&, I, I, long) MP_NO_BODY
template <class I, class O> O inclusive_scan(I, I, O);
template <class P, class I, class O> O inclusive_scan(const P&, I, I, O) MP_NO_BODY
template <class I, class O> O exclusive_scan(I, I, O);
template <class I> void sort(I, I);
template <class P, class I> void sort(const P&, I, I) MP_NO_BODY
template <class K, class V> void sort_by_key(K, K, V);
template <class P, class K, class V> void sort_by_key(const P&, K, K, V) MP_NO_BODY
template <class K, class V, class F> void stable_sort_by_key(K, K, V, F) MP_NO_BODY
template <class I> I max_element(I, I);
template <class P, class I> I max_element(const P&, I, I) MP_NO_BODY
template <class I> I min_element(I, I);
template <class I, class T> ptrdiff_t count(I, I, const T&);
template <class I, class F> ptrdiff_t count_if(I, I, F) MP_NO_BODY
#undef MP_WITH_POLICY
#undef MP_C

namespace random {
class mp_engine {
public:
    typedef unsigned int result_type;
    MP_HD explicit mp_engine(result_type = 1u);
    MP_HD void seed(result_type);
    MP_HD void discard(unsigned long long);
    MP_HD result_type operator()();
};
typedef mp_engine default_random_engine;
typedef mp_engine minstd_rand;
template <class T = double> class uniform_real_distribution {
public:
    MP_HD explicit uniform_real_distribution(T = 0, T = 1);
    template <class E> MP_HD T operator()(E&);
};
template <class T = double> class normal_distribution {
public:
    MP_HD explicit normal_distribution(T = 0, T = 1);
    template <class E> MP_HD T operator()(E&);
};
template <class T = int> class uniform_int_distribution {
public:
    MP_HD explicit uniform_int_distribution(T = 0, T = 1);
    template <class E> MP_HD T operator()(E&);
};
}  // namespace random
using random::default_random_engine;
using random::minstd_rand;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;

}  // namespace thrust
