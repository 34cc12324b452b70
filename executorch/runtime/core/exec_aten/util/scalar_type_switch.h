/// ET_FORALL_<SET>_TYPES(_) calls _(C++ type, enumerator) for a set of element types; the _WITH
/// forms pass one or two more arguments first, the _AND forms add one more enumerator.
/// ET_SWITCH_<SET>_TYPES dispatches on a set. Included by scalar_type_util.h.
#pragma once

#include <executorch/runtime/core/portable_type/scalar_type.h>
#include <executorch/runtime/platform/log.h>

#define ET_FORALL_INT_TYPES(_) \
  _(uint8_t, Byte)             \
  _(int8_t, Char)              \
  _(int16_t, Short)            \
  _(int32_t, Int)              \
  _(int64_t, Long)
#define ET_FORALL_INT_TYPES_WITH(A, _) \
  _(A, uint8_t, Byte)                  \
  _(A, int8_t, Char)                   \
  _(A, int16_t, Short)                 \
  _(A, int32_t, Int)                   \
  _(A, int64_t, Long)
#define ET_FORALL_INT_TYPES_WITH2(A, B, _) \
  _(A, B, uint8_t, Byte)                   \
  _(A, B, int8_t, Char)                    \
  _(A, B, int16_t, Short)                  \
  _(A, B, int32_t, Int)                    \
  _(A, B, int64_t, Long)
#define ET_FORALL_FLOAT_TYPES(_) \
  _(float, Float)                \
  _(double, Double)
#define ET_FORALL_FLOAT_TYPES_WITH(A, _) \
  _(A, float, Float)                     \
  _(A, double, Double)
#define ET_FORALL_FLOAT_TYPES_WITH2(A, B, _) \
  _(A, B, float, Float)                      \
  _(A, B, double, Double)
#define ET_FORALL_COMPLEX_TYPES(_)                                \
  _(::executorch::runtime::etensor::complex<float>, ComplexFloat) \
  _(::executorch::runtime::etensor::complex<double>, ComplexDouble)
#define ET_FORALL_COMPLEX_TYPES_WITH(A, _)                           \
  _(A, ::executorch::runtime::etensor::complex<float>, ComplexFloat) \
  _(A, ::executorch::runtime::etensor::complex<double>, ComplexDouble)
#define ET_FORALL_COMPLEX_TYPES_WITH2(A, B, _)                          \
  _(A, B, ::executorch::runtime::etensor::complex<float>, ComplexFloat) \
  _(A, B, ::executorch::runtime::etensor::complex<double>, ComplexDouble)
#define ET_FORALL_QINT_TYPES(_)                         \
  _(::executorch::runtime::etensor::qint8, QInt8)       \
  _(::executorch::runtime::etensor::quint8, QUInt8)     \
  _(::executorch::runtime::etensor::qint32, QInt32)     \
  _(::executorch::runtime::etensor::quint4x2, QUInt4x2) \
  _(::executorch::runtime::etensor::quint2x4, QUInt2x4)
#define ET_FORALL_QINT_TYPES_WITH(A, _)                    \
  _(A, ::executorch::runtime::etensor::qint8, QInt8)       \
  _(A, ::executorch::runtime::etensor::quint8, QUInt8)     \
  _(A, ::executorch::runtime::etensor::qint32, QInt32)     \
  _(A, ::executorch::runtime::etensor::quint4x2, QUInt4x2) \
  _(A, ::executorch::runtime::etensor::quint2x4, QUInt2x4)
#define ET_FORALL_QINT_TYPES_WITH2(A, B, _)                   \
  _(A, B, ::executorch::runtime::etensor::qint8, QInt8)       \
  _(A, B, ::executorch::runtime::etensor::quint8, QUInt8)     \
  _(A, B, ::executorch::runtime::etensor::qint32, QInt32)     \
  _(A, B, ::executorch::runtime::etensor::quint4x2, QUInt4x2) \
  _(A, B, ::executorch::runtime::etensor::quint2x4, QUInt2x4)
#define ET_FORALL_REAL_TYPES(_) \
  ET_FORALL_INT_TYPES(_)        \
  ET_FORALL_FLOAT_TYPES(_)
#define ET_FORALL_REAL_TYPES_WITH(A, _) \
  ET_FORALL_INT_TYPES_WITH(A, _)        \
  ET_FORALL_FLOAT_TYPES_WITH(A, _)
#define ET_FORALL_REAL_TYPES_WITH2(A, B, _) \
  ET_FORALL_INT_TYPES_WITH2(A, B, _)        \
  ET_FORALL_FLOAT_TYPES_WITH2(A, B, _)
#define ET_FORALL_FLOATH_TYPES(_) \
  ET_FORALL_FLOAT_TYPES(_)        \
  _(::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_FLOATH_TYPES_WITH(A, _) \
  ET_FORALL_FLOAT_TYPES_WITH(A, _)        \
  _(A, ::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_FLOATH_TYPES_WITH2(A, B, _) \
  ET_FORALL_FLOAT_TYPES_WITH2(A, B, _)        \
  _(A, B, ::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_FLOATHBF16_TYPES(_) \
  ET_FORALL_FLOATH_TYPES(_)           \
  _(::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_FLOATHBF16_TYPES_WITH(A, _) \
  ET_FORALL_FLOATH_TYPES_WITH(A, _)           \
  _(A, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_FLOATHBF16_TYPES_WITH2(A, B, _) \
  ET_FORALL_FLOATH_TYPES_WITH2(A, B, _)           \
  _(A, B, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALH_TYPES(_) \
  ET_FORALL_REAL_TYPES(_)        \
  _(::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_REALH_TYPES_WITH(A, _) \
  ET_FORALL_REAL_TYPES_WITH(A, _)        \
  _(A, ::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_REALH_TYPES_WITH2(A, B, _) \
  ET_FORALL_REAL_TYPES_WITH2(A, B, _)        \
  _(A, B, ::executorch::runtime::etensor::Half, Half)
#define ET_FORALL_REALB_TYPES(_) \
  ET_FORALL_REAL_TYPES(_)        \
  _(bool, Bool)
#define ET_FORALL_REALB_TYPES_WITH(A, _) \
  ET_FORALL_REAL_TYPES_WITH(A, _)        \
  _(A, bool, Bool)
#define ET_FORALL_REALB_TYPES_WITH2(A, B, _) \
  ET_FORALL_REAL_TYPES_WITH2(A, B, _)        \
  _(A, B, bool, Bool)
#define ET_FORALL_REALHB_TYPES(_) \
  ET_FORALL_REALH_TYPES(_)        \
  _(bool, Bool)
#define ET_FORALL_REALHB_TYPES_WITH(A, _) \
  ET_FORALL_REALH_TYPES_WITH(A, _)        \
  _(A, bool, Bool)
#define ET_FORALL_REALHB_TYPES_WITH2(A, B, _) \
  ET_FORALL_REALH_TYPES_WITH2(A, B, _)        \
  _(A, B, bool, Bool)
#define ET_FORALL_REALHBF16_TYPES(_) \
  ET_FORALL_REALH_TYPES(_)           \
  _(::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALHBF16_TYPES_WITH(A, _) \
  ET_FORALL_REALH_TYPES_WITH(A, _)           \
  _(A, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALHBF16_TYPES_WITH2(A, B, _) \
  ET_FORALL_REALH_TYPES_WITH2(A, B, _)           \
  _(A, B, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALHBBF16_TYPES(_) \
  ET_FORALL_REALHB_TYPES(_)           \
  _(::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALHBBF16_TYPES_WITH(A, _) \
  ET_FORALL_REALHB_TYPES_WITH(A, _)           \
  _(A, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_REALHBBF16_TYPES_WITH2(A, B, _) \
  ET_FORALL_REALHB_TYPES_WITH2(A, B, _)           \
  _(A, B, ::executorch::runtime::etensor::BFloat16, BFloat16)
#define ET_FORALL_COMPLEXH_TYPES(_) \
  ET_FORALL_COMPLEX_TYPES(_)        \
  _(::executorch::runtime::etensor::complex<::executorch::runtime::etensor::Half>, ComplexHalf)
#define ET_FORALL_COMPLEXH_TYPES_WITH(A, _) \
  ET_FORALL_COMPLEX_TYPES_WITH(A, _)        \
  _(A, ::executorch::runtime::etensor::complex<::executorch::runtime::etensor::Half>, ComplexHalf)
#define ET_FORALL_COMPLEXH_TYPES_WITH2(A, B, _)                                          \
  ET_FORALL_COMPLEX_TYPES_WITH2(A, B, _)                                                 \
  _(A, B, ::executorch::runtime::etensor::complex<::executorch::runtime::etensor::Half>, \
    ComplexHalf)
#define ET_FORALL_INT_TYPES_AND(ADDITIONAL, _)                                                    \
  ET_FORALL_INT_TYPES(_)                                                                          \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL>::type, \
    ADDITIONAL)
#define ET_FORALL_FLOAT_TYPES_AND(ADDITIONAL, _)                                                  \
  ET_FORALL_FLOAT_TYPES(_)                                                                        \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL>::type, \
    ADDITIONAL)
#define ET_FORALL_FLOAT_TYPES_AND2(ADDITIONAL1, ADDITIONAL2, _)                                    \
  ET_FORALL_FLOAT_TYPES_AND(ADDITIONAL1, _)                                                        \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL2>::type, \
    ADDITIONAL2)
#define ET_FORALL_FLOATHBF16_TYPES_AND(ADDITIONAL, _)                                             \
  ET_FORALL_FLOATHBF16_TYPES(_)                                                                   \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL>::type, \
    ADDITIONAL)
#define ET_FORALL_REAL_TYPES_AND(ADDITIONAL, _)                                                   \
  ET_FORALL_REAL_TYPES(_)                                                                         \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL>::type, \
    ADDITIONAL)
#define ET_FORALL_REAL_TYPES_AND2(ADDITIONAL1, ADDITIONAL2, _)                                     \
  ET_FORALL_REAL_TYPES_AND(ADDITIONAL1, _)                                                         \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL2>::type, \
    ADDITIONAL2)
#define ET_FORALL_REAL_TYPES_AND3(ADDITIONAL1, ADDITIONAL2, ADDITIONAL3, _)                        \
  ET_FORALL_REAL_TYPES_AND2(ADDITIONAL1, ADDITIONAL2, _)                                           \
  _(::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL3>::type, \
    ADDITIONAL3)
#define ET_FORALL_REAL_TYPES_AND_WITH(ADDITIONAL, A, _)                                           \
  ET_FORALL_REAL_TYPES_WITH(A, _)                                                                 \
  _(A,                                                                                            \
    ::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::ADDITIONAL>::type, \
    ADDITIONAL)

#define ET_INTERNAL_SWITCH_CASE(NAME, CTYPE_ALIAS, ...)                                         \
  case ::executorch::aten::ScalarType::NAME: {                                                  \
    using CTYPE_ALIAS =                                                                         \
        ::executorch::runtime::ScalarTypeToCppType<::executorch::aten::ScalarType::NAME>::type; \
    return __VA_ARGS__();                                                                       \
  }

#define ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ...)                   \
  [&] {                                                                \
    const ::executorch::aten::ScalarType et_switch_type = (TYPE);      \
    switch (et_switch_type) {                                          \
      __VA_ARGS__                                                      \
      default:                                                         \
        ET_LOG(Error, "%s: unsupported dtype %s", NAME,                \
               ::executorch::runtime::toString(et_switch_type));       \
        (CONTEXT).fail(::executorch::runtime::Error::InvalidArgument); \
        break;                                                         \
    }                                                                  \
  }()

#define ET_INTERNAL_SWITCH_CASE_INT(CTYPE_ALIAS, ...)      \
  ET_INTERNAL_SWITCH_CASE(Byte, CTYPE_ALIAS, __VA_ARGS__)  \
  ET_INTERNAL_SWITCH_CASE(Char, CTYPE_ALIAS, __VA_ARGS__)  \
  ET_INTERNAL_SWITCH_CASE(Short, CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Int, CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(Long, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, ...)    \
  ET_INTERNAL_SWITCH_CASE(Float, CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Double, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_INT(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_FLOATH(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Half, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_FLOATHBF16(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE_FLOATH(CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(BFloat16, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALH(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Half, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALB(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Bool, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALHB(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_REALH(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(Bool, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALHBF16(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE_REALH(CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(BFloat16, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALHBBF16(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE_REALHB(CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(BFloat16, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_REALHBBF16_AND_UINT(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE_REALHBBF16(CTYPE_ALIAS, __VA_ARGS__)        \
  ET_INTERNAL_SWITCH_CASE(UInt16, CTYPE_ALIAS, __VA_ARGS__)           \
  ET_INTERNAL_SWITCH_CASE(UInt32, CTYPE_ALIAS, __VA_ARGS__)           \
  ET_INTERNAL_SWITCH_CASE(UInt64, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_COMPLEX(CTYPE_ALIAS, ...)         \
  ET_INTERNAL_SWITCH_CASE(ComplexFloat, CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(ComplexDouble, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_COMPLEXH(CTYPE_ALIAS, ...)  \
  ET_INTERNAL_SWITCH_CASE_COMPLEX(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(ComplexHalf, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_QINT(CTYPE_ALIAS, ...)        \
  ET_INTERNAL_SWITCH_CASE(QInt8, CTYPE_ALIAS, __VA_ARGS__)    \
  ET_INTERNAL_SWITCH_CASE(QUInt8, CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(QInt32, CTYPE_ALIAS, __VA_ARGS__)   \
  ET_INTERNAL_SWITCH_CASE(QUInt4x2, CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE(QUInt2x4, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE(Bool, CTYPE_ALIAS, __VA_ARGS__)    \
  ET_INTERNAL_SWITCH_CASE(Long, CTYPE_ALIAS, __VA_ARGS__)    \
  ET_INTERNAL_SWITCH_CASE(Double, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_REAL(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE(Long, CTYPE_ALIAS, __VA_ARGS__)         \
  ET_INTERNAL_SWITCH_CASE(Double, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_INTB(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE(Bool, CTYPE_ALIAS, __VA_ARGS__)         \
  ET_INTERNAL_SWITCH_CASE(Long, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_FLOATB(CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH_CASE(Bool, CTYPE_ALIAS, __VA_ARGS__)           \
  ET_INTERNAL_SWITCH_CASE(Double, CTYPE_ALIAS, __VA_ARGS__)
#define ET_INTERNAL_SWITCH_CASE_ALL(CTYPE_ALIAS, ...)                   \
  ET_INTERNAL_SWITCH_CASE_REALHBBF16_AND_UINT(CTYPE_ALIAS, __VA_ARGS__) \
  ET_INTERNAL_SWITCH_CASE_COMPLEXH(CTYPE_ALIAS, __VA_ARGS__)            \
  ET_INTERNAL_SWITCH_CASE_QINT(CTYPE_ALIAS, __VA_ARGS__)                \
  ET_INTERNAL_SWITCH_CASE(Bits1x8, CTYPE_ALIAS, __VA_ARGS__)            \
  ET_INTERNAL_SWITCH_CASE(Bits2x4, CTYPE_ALIAS, __VA_ARGS__)            \
  ET_INTERNAL_SWITCH_CASE(Bits4x2, CTYPE_ALIAS, __VA_ARGS__)            \
  ET_INTERNAL_SWITCH_CASE(Bits8, CTYPE_ALIAS, __VA_ARGS__)              \
  ET_INTERNAL_SWITCH_CASE(Bits16, CTYPE_ALIAS, __VA_ARGS__)

#define ET_SWITCH_INT_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_INT(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOATH_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_FLOATH(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOATHBF16_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                 \
                     ET_INTERNAL_SWITCH_CASE_FLOATHBF16(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALH_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_REALH(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALB_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_REALB(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALHB_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_REALHB(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALHBF16_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                \
                     ET_INTERNAL_SWITCH_CASE_REALHBF16(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALHBBF16_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                 \
                     ET_INTERNAL_SWITCH_CASE_REALHBBF16(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REALHBBF16_AND_UINT_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                          \
                     ET_INTERNAL_SWITCH_CASE_REALHBBF16_AND_UINT(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_COMPLEX_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_COMPLEX(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_COMPLEXH_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                               \
                     ET_INTERNAL_SWITCH_CASE_COMPLEXH(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_QINT_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_QINT(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                 \
                     ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_REAL_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                      \
                     ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_REAL(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_INTB_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                      \
                     ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_INTB(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_SCALAR_OBJ_FLOATB_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                        \
                     ET_INTERNAL_SWITCH_CASE_SCALAR_OBJ_FLOATB(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_ALL_TYPES(TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME, ET_INTERNAL_SWITCH_CASE_ALL(CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND(ADDITIONAL, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                           \
                     ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__)         \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND2(ADDITIONAL1, ADDITIONAL2, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                                          \
                     ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__)                        \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL1, CTYPE_ALIAS, __VA_ARGS__)            \
                             ET_INTERNAL_SWITCH_CASE(ADDITIONAL2, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_REAL_TYPES_AND3(ADDITIONAL1, ADDITIONAL2, ADDITIONAL3, TYPE, CONTEXT, NAME, \
                                  CTYPE_ALIAS, ...)                                           \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                                     \
                     ET_INTERNAL_SWITCH_CASE_REAL(CTYPE_ALIAS, __VA_ARGS__)                   \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL1, CTYPE_ALIAS, __VA_ARGS__)       \
                             ET_INTERNAL_SWITCH_CASE(ADDITIONAL2, CTYPE_ALIAS, __VA_ARGS__)   \
                                 ET_INTERNAL_SWITCH_CASE(ADDITIONAL3, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_INT_TYPES_AND(ADDITIONAL, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                          \
                     ET_INTERNAL_SWITCH_CASE_INT(CTYPE_ALIAS, __VA_ARGS__)         \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND(ADDITIONAL, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                            \
                     ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__)         \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND2(ADDITIONAL1, ADDITIONAL2, TYPE, CONTEXT, NAME, CTYPE_ALIAS, \
                                   ...)                                                        \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                                      \
                     ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__)                   \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL1, CTYPE_ALIAS, __VA_ARGS__)        \
                             ET_INTERNAL_SWITCH_CASE(ADDITIONAL2, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOAT_TYPES_AND3(ADDITIONAL1, ADDITIONAL2, ADDITIONAL3, TYPE, CONTEXT, NAME, \
                                   CTYPE_ALIAS, ...)                                           \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                                      \
                     ET_INTERNAL_SWITCH_CASE_FLOAT(CTYPE_ALIAS, __VA_ARGS__)                   \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL1, CTYPE_ALIAS, __VA_ARGS__)        \
                             ET_INTERNAL_SWITCH_CASE(ADDITIONAL2, CTYPE_ALIAS, __VA_ARGS__)    \
                                 ET_INTERNAL_SWITCH_CASE(ADDITIONAL3, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FLOATHBF16_TYPES_AND(ADDITIONAL, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                                 \
                     ET_INTERNAL_SWITCH_CASE_FLOATHBF16(CTYPE_ALIAS, __VA_ARGS__)         \
                         ET_INTERNAL_SWITCH_CASE(ADDITIONAL, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_TWO_TYPES(T1, T2, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                  \
                     ET_INTERNAL_SWITCH_CASE(T1, CTYPE_ALIAS, __VA_ARGS__) \
                         ET_INTERNAL_SWITCH_CASE(T2, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_THREE_TYPES(T1, T2, T3, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                        \
                     ET_INTERNAL_SWITCH_CASE(T1, CTYPE_ALIAS, __VA_ARGS__)       \
                         ET_INTERNAL_SWITCH_CASE(T2, CTYPE_ALIAS, __VA_ARGS__)   \
                             ET_INTERNAL_SWITCH_CASE(T3, CTYPE_ALIAS, __VA_ARGS__))
#define ET_SWITCH_FOUR_TYPES(T1, T2, T3, T4, TYPE, CONTEXT, NAME, CTYPE_ALIAS, ...) \
  ET_INTERNAL_SWITCH(TYPE, CONTEXT, NAME,                                           \
                     ET_INTERNAL_SWITCH_CASE(T1, CTYPE_ALIAS, __VA_ARGS__)          \
                         ET_INTERNAL_SWITCH_CASE(T2, CTYPE_ALIAS, __VA_ARGS__)      \
                             ET_INTERNAL_SWITCH_CASE(T3, CTYPE_ALIAS, __VA_ARGS__)  \
                                 ET_INTERNAL_SWITCH_CASE(T4, CTYPE_ALIAS, __VA_ARGS__))
