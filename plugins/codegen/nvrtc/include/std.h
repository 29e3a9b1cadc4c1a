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
template <class A, class B> inline constexpr bool is_same_v = is_same<A, B>::value;
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
template <class T> struct remove_const {
    using type = T;
};
template <class T> struct remove_const<const T> {
    using type = T;
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
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using decay_value = typename remove_const<remove_reference_t<T>>::type;
template <class T> struct is_floating_point
    : bool_constant<is_same_v<decay_value<T>, float> || is_same_v<decay_value<T>, double>> {};
template <class T> inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
struct is_integral : bool_constant<T(1) / T(2) == T(0) && !is_floating_point_v<T>> {};
template <class T> __device__ void swap(T &a, T &b)
{
    T c = a;
    a = b;
    b = c;
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
