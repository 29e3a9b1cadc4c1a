/*
 * Included behind the prelude when a candidate mentions namespace std: the little of it that
 * kernels use. NVRTC itself has std::move and std::forward.
 */
#ifndef RUNG_STD_H
#define RUNG_STD_H

namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::intptr_t;
using ::uintptr_t;
using ::size_t;
using ::ptrdiff_t;
using nullptr_t = decltype(nullptr);

using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::pow;
using ::rint;
using ::round;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
using ::ceilf;
using ::cosf;
using ::erff;
using ::exp2f;
using ::expf;
using ::fabsf;
using ::floorf;
using ::fmaf;
using ::fmaxf;
using ::fminf;
using ::log2f;
using ::logf;
using ::powf;
using ::roundf;
using ::sinf;
using ::sqrtf;
using ::tanhf;
__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline double abs(double x) { return ::fabs(x); }
__device__ inline int abs(int x) { return ::abs(x); }
__device__ inline long abs(long x) { return x < 0 ? -x : x; }
__device__ inline long long abs(long long x) { return x < 0 ? -x : x; }

template <class T>
__device__ constexpr const T &min(const T &a, const T &b) { return b < a ? b : a; }
template <class T>
__device__ constexpr const T &max(const T &a, const T &b) { return a < b ? b : a; }
template <class T> __device__ constexpr const T &clamp(const T &x, const T &lo, const T &hi)
{
    return x < lo ? lo : hi < x ? hi : x;
}

template <class T, T V> struct integral_constant {
    static constexpr T value = V;
    using value_type = T;
    using type = integral_constant;
    __device__ constexpr operator T() const { return V; }
};
template <bool B> using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <class A, class B> struct is_same : false_type {};
template <class A> struct is_same<A, A> : true_type {};
template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
template <bool B, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> {
    using type = T;
};
template <bool B, class T = void> using enable_if_t = typename enable_if<B, T>::type;
template <bool B, class T, class F> struct conditional {
    using type = T;
};
template <class T, class F> struct conditional<false, T, F> {
    using type = F;
};
template <bool B, class T, class F> using conditional_t = typename conditional<B, T, F>::type;
template <class...> using void_t = void;
template <class T> struct remove_const {
    using type = T;
};
template <class T> struct remove_const<const T> {
    using type = T;
};
template <class T> struct remove_volatile {
    using type = T;
};
template <class T> struct remove_volatile<volatile T> {
    using type = T;
};
template <class T> struct remove_cv {
    using type = typename remove_volatile<typename remove_const<T>::type>::type;
};
template <class T> struct remove_reference {
    using type = T;
};
template <class T> struct remove_reference<T &> {
    using type = T;
};
template <class T> struct remove_reference<T &&> {
    using type = T;
};
template <class T> struct remove_pointer {
    using type = T;
};
template <class T> struct remove_pointer<T *> {
    using type = T;
};
template <class T> using remove_const_t = typename remove_const<T>::type;
template <class T> using remove_cv_t = typename remove_cv<T>::type;
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using remove_pointer_t = typename remove_pointer<T>::type;
template <class T> using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
/* Of arrays and functions too: what a parameter of this type would be. */
template <class T> T rung_decayed(T);
template <class T> struct decay {
    using type = decltype(rung_decayed(*(remove_reference_t<T> *)0));
};
template <class T> using decay_t = typename decay<T>::type;
template <class T> T &&declval() noexcept;
template <class T, class... Any> constexpr bool rung_is_any = false;
template <class T, class A, class... Any> constexpr bool rung_is_any<T, A, Any...> =
    is_same_v<remove_cv_t<T>, A> || rung_is_any<T, Any...>;
template <class T> constexpr bool is_floating_point_v = rung_is_any<T, float, double>;
template <class T> constexpr bool is_integral_v =
    rung_is_any<T, bool, char, signed char, unsigned char, wchar_t, char16_t, char32_t, short,
                unsigned short, int, unsigned int, long, unsigned long, long long,
                unsigned long long>;
template <class T> struct is_floating_point : bool_constant<is_floating_point_v<T>> {};
template <class T> struct is_integral : bool_constant<is_integral_v<T>> {};
template <class T> struct is_arithmetic
    : bool_constant<is_integral_v<T> || is_floating_point_v<T>> {};
template <class T> constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T, bool = is_arithmetic_v<T>> struct is_signed : bool_constant<(T(-1) < T(0))> {};
template <class T> struct is_signed<T, false> : false_type {};
template <class T> constexpr bool is_signed_v = is_signed<T>::value;
template <class T> struct is_unsigned
    : bool_constant<is_arithmetic_v<T> && !is_signed_v<T>> {};
template <class T> constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T> struct is_pointer : false_type {};
template <class T> struct is_pointer<T *> : true_type {};
template <class T> constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T> struct is_const : false_type {};
template <class T> struct is_const<const T> : true_type {};
template <class T> constexpr bool is_const_v = is_const<T>::value;
template <class T> struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T> constexpr bool is_void_v = is_void<T>::value;

template <class T> __device__ void swap(T &a, T &b)
{
    T c = a;
    a = b;
    b = c;
}

template <class T, T... I> struct integer_sequence {
    static constexpr size_t size() { return sizeof...(I); }
};
template <size_t... I> using index_sequence = integer_sequence<size_t, I...>;
template <class T, size_t N, T... I> struct rung_counted
    : rung_counted<T, N - 1, T(N - 1), I...> {};
template <class T, T... I> struct rung_counted<T, 0, I...> {
    using type = integer_sequence<T, I...>;
};
template <class T, T N> using make_integer_sequence = typename rung_counted<T, size_t(N)>::type;
template <size_t N> using make_index_sequence = make_integer_sequence<size_t, N>;

template <class A, class B> struct pair {
    using first_type = A;
    using second_type = B;
    A first;
    B second;
};
template <class A, class B> __device__ constexpr pair<decay_t<A>, decay_t<B>> make_pair(A a, B b)
{
    return {a, b};
}

template <class T, size_t N> struct array {
    using value_type = T;
    T elements[N];
    __device__ constexpr T &operator[](size_t i) { return elements[i]; }
    __device__ constexpr const T &operator[](size_t i) const { return elements[i]; }
    __device__ constexpr T *data() { return elements; }
    __device__ constexpr const T *data() const { return elements; }
    __device__ constexpr T *begin() { return elements; }
    __device__ constexpr const T *begin() const { return elements; }
    __device__ constexpr T *end() { return elements + N; }
    __device__ constexpr const T *end() const { return elements + N; }
    __device__ constexpr size_t size() const { return N; }
    __device__ void fill(const T &value)
    {
        for (size_t i = 0; i < N; i++)
            elements[i] = value;
    }
};

template <class... T> struct tuple {};
template <class A, class... Rest> struct tuple<A, Rest...> {
    A head;
    tuple<Rest...> tail;
    tuple() = default;
    __device__ constexpr tuple(A a, Rest... rest) : head(a), tail(rest...) {}
};
/* Declared as cuda/std declares them. */
template <class... T> struct tuple_size;
template <class... T> struct tuple_size<tuple<T...>> : integral_constant<size_t, sizeof...(T)> {};
template <size_t I, class... T> struct tuple_element;
template <size_t I, class A, class... Rest> struct tuple_element<I, tuple<A, Rest...>>
    : tuple_element<I - 1, tuple<Rest...>> {};
template <class A, class... Rest> struct tuple_element<0, tuple<A, Rest...>> {
    using type = A;
};
template <size_t I, class T> using tuple_element_t = typename tuple_element<I, T>::type;
template <size_t I> struct rung_at {
    template <class T> __device__ static constexpr auto &in(T &t)
    {
        return rung_at<I - 1>::in(t.tail);
    }
};
template <> struct rung_at<0> {
    template <class T> __device__ static constexpr auto &in(T &t) { return t.head; }
};
template <size_t I, class... T> __device__ constexpr auto &get(tuple<T...> &t)
{
    return rung_at<I>::in(t);
}
template <size_t I, class... T> __device__ constexpr auto &get(tuple<T...> &&t)
{
    return rung_at<I>::in(t); /* for structured bindings */
}
template <size_t I, class... T> __device__ constexpr const auto &get(const tuple<T...> &t)
{
    return rung_at<I>::in(t);
}
template <class... T> __device__ constexpr tuple<decay_t<T>...> make_tuple(T... values)
{
    return {values...};
}

template <class T> struct numeric_limits;
#define RUNG_LIMITS(T, LOWEST, MIN, MAX)                                                           \
    template <> struct numeric_limits<T> {                                                         \
        static constexpr bool is_specialized = true;                                               \
        __device__ static constexpr T lowest() { return LOWEST; }                                  \
        __device__ static constexpr T min() { return MIN; }                                        \
        __device__ static constexpr T max() { return MAX; }
#define RUNG_INT_LIMITS(T, MIN, MAX)                                                               \
    RUNG_LIMITS(T, MIN, MIN, MAX)                                                                  \
    };
#define RUNG_FLOAT_LIMITS(T, MIN, MAX, EPSILON, INF)                                               \
    RUNG_LIMITS(T, -MAX, MIN, MAX)                                                                 \
        __device__ static constexpr T epsilon() { return EPSILON; }                                \
        __device__ static T infinity() { return INF; }                                             \
        __device__ static T quiet_NaN() { return NAN; }                                            \
    };
RUNG_INT_LIMITS(signed char, SCHAR_MIN, SCHAR_MAX)
RUNG_INT_LIMITS(unsigned char, 0, UCHAR_MAX)
RUNG_INT_LIMITS(short, SHRT_MIN, SHRT_MAX)
RUNG_INT_LIMITS(unsigned short, 0, USHRT_MAX)
RUNG_INT_LIMITS(int, INT_MIN, INT_MAX)
RUNG_INT_LIMITS(unsigned int, 0, UINT_MAX)
RUNG_INT_LIMITS(long, LONG_MIN, LONG_MAX)
RUNG_INT_LIMITS(unsigned long, 0, ULONG_MAX)
RUNG_INT_LIMITS(long long, LLONG_MIN, LLONG_MAX)
RUNG_INT_LIMITS(unsigned long long, 0, ULLONG_MAX)
RUNG_FLOAT_LIMITS(float, FLT_MIN, FLT_MAX, FLT_EPSILON, INFINITY)
RUNG_FLOAT_LIMITS(double, DBL_MIN, DBL_MAX, DBL_EPSILON, HUGE_VAL)
#undef RUNG_LIMITS
#undef RUNG_INT_LIMITS
#undef RUNG_FLOAT_LIMITS
} // namespace std
#endif
