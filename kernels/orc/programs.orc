# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The inner loops of the orc level, for processors that have no level of their own. Whoever changes
# this file remakes programs-dist.[ch] with update.sh.
#
# ORC's float operations take subnormal operands and results for zero. No program here may have one
# that counts: see docs/decisions.md.

.init vlm_orc_programs_init

# One group of quantise_i8: q = x * inverse, rounded to even by the addition of 1.5 * 2^23, whose
# bits are then taken off again. Only a NaN is beyond 127; it becomes -127 whatever its sign.
# A subnormal x or product is far below 0.5, so that zero is what it rounds to.
.function vlm_orc_quantise
.dest 1 q int8_t
.accumulator 4 sum int32_t
.source 4 x float
.floatparam 4 inverse
.temp 4 value
.temp 2 word
.temp 2 mask

mulf value, x, inverse
addf value, value, 0x4b400000
subl value, value, 0x4b400000
convssslw word, value
cmpgtsw mask, word, 127
xorw word, word, mask
maxsw word, word, -127
convwb q, word
convswl value, word
accl sum, value


# One row of resample_column: sum += weight * a.
.function vlm_orc_column_add1
.dest 4 sum int32_t
.source 1 a uint8_t
.param 2 weight
.temp 2 pixel
.temp 4 product

convubw pixel, a
mulswl product, pixel, weight
addl sum, sum, product


# Four rows at once.
.function vlm_orc_column_add4
.dest 4 sum int32_t
.source 1 a uint8_t
.source 1 b uint8_t
.source 1 c uint8_t
.source 1 d uint8_t
.param 2 weight_a
.param 2 weight_b
.param 2 weight_c
.param 2 weight_d
.temp 2 pixel
.temp 4 product
.temp 4 total

convubw pixel, a
mulswl total, pixel, weight_a
convubw pixel, b
mulswl product, pixel, weight_b
addl total, total, product
convubw pixel, c
mulswl product, pixel, weight_c
addl total, total, product
convubw pixel, d
mulswl product, pixel, weight_d
addl total, total, product
addl sum, sum, total


# y = clamp (sum >> bits, 0, 255)
.function vlm_orc_column_end
.dest 1 y uint8_t
.source 4 sum int32_t
.param 4 bits
.temp 4 value
.temp 2 word

shrsl value, sum, bits
convssslw word, value
convsuswb y, word
