/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_memory: one allocation of the code under test, chosen by the test, finds no memory. The linker
 * puts these in the place of malloc(3) and the others wherever the program's own objects call them
 * (mk/tests.mk); libraries have their own memory as ever. For one file of a program.
 */
#ifndef VETHGUARD_TESTS_LIB_NO_MEMORY_H
#define VETHGUARD_TESTS_LIB_NO_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);

static unsigned no_memory_left; /* allocations until the one that fails; 0: none will */

/* The nth allocation from now on fails (counted from 1), and no other. */
static inline void no_memory_at(unsigned nth)
{
	no_memory_left = nth;
}

/* Ends that. Returns true if the allocation was asked for, and so failed. */
static inline bool no_memory_met(void)
{
	bool met = no_memory_left == 0;

	no_memory_left = 0;
	return met;
}

static bool no_memory_now(void)
{
	if (no_memory_left == 0 || --no_memory_left > 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return no_memory_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
	return no_memory_now() ? NULL : __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n)
{
	return no_memory_now() ? NULL : __real_realloc(p, n);
}

#endif
