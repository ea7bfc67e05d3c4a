// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A program whose instructions are known; count.sh has the sums. A stage goes on after the function
// that begins it has come back.

	.arch armv8.6-a
	.text
	.global _start, first, second
_start:
	adr x19, memory
	bl first
	bl second
	bl first		// the stage comes a second time
	mov x0, #0
	mov x8, #93		// exit
	svc #0

// 3 others, and 1000 rounds of 5 products, 2 fma, 2 vector, 2 loads, 1 store, 2 others.
first:
	mov x0, #1000
1:	ldr q0, [x19]
	ldp q1, q2, [x19, #16]
	sdot v16.4s, v0.16b, v1.16b
	sdot v17.4s, v0.16b, v1.4b[2]
	smmla v18.4s, v0.16b, v2.16b
	smull v19.8h, v0.8b, v1.8b
	udot v20.4s, v0.16b, v1.4b[0]
	fmla v21.4s, v0.4s, v1.4s
	fmla v22.4s, v0.4s, v1.s[1]
	and v23.16b, v0.16b, v1.16b
	ushr v24.16b, v0.16b, #4
	str q23, [x19, #48]
	subs x0, x0, #1
	b.ne 1b
	nop
	ret

// 3 others, and 70000 rounds of 1 product, 1 load, 1 store, 4 others, one of which is a prefetch.
second:
	mov x0, #4464
	movk x0, #1, lsl #16
2:	ldr x1, [x19, #8]
	prfm pldl1keep, [x19, #4096]
	usdot v16.4s, v0.16b, v1.16b
	str w1, [x19, #60]
	add x2, x1, #1
	subs x0, x0, #1
	b.ne 2b
	ret

	.bss
	.balign 64
memory:	.skip 64
