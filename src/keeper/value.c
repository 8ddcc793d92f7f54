/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Editors and `echo` end a file with a line end, so one is removed. Anything else that cannot be in
 * one field of a request is refused here, where the operator can be told the source.
 */
#include "keeper/value.h"

#include "vethguard/credential/mask.h"

/* Turns line ends into spaces: programs write JSON on several lines, and in JSON a line end is only
 * a blank. */
static void join_lines(struct slice *value)
{
	char *p = (char *)(uintptr_t)value->p;

	if (value->n < 2 || p[0] != '{' || p[value->n - 1] != '}')
		return;
	for (size_t i = 0; i < value->n; i++)
		if (p[i] == '\n' || p[i] == '\r')
			p[i] = ' ';
}

/* True for certificates and keys (RFC 7468): their lines are a part of them. */
static bool is_pem(struct slice value)
{
	return slice_starts_with(value, SLICE("-----BEGIN "));
}

const char *value_check(struct slice *value)
{
	if (value->n > VALUE_MAX)
		return "gives more than 64512 bytes";
	if (value->n > 0 && value->p[value->n - 1] == '\n')
		value->n -= value->n > 1 && value->p[value->n - 2] == '\r' ? 2 : 1;
	if (value->n == 0)
		return "gives nothing";
	if (memchr(value->p, 0, value->n))
		return "gives a NUL byte";
	join_lines(value);
	if (!is_pem(*value) &&
	        (memchr(value->p, '\n', value->n) || memchr(value->p, '\r', value->n)))
		return "gives more than one line";
	if (value->n < MASK_VALUE_MIN)
		return "gives fewer than 6 bytes, which cannot be told from ordinary text";
	return NULL;
}
_Static_assert(VALUE_MAX == 64512 && MASK_VALUE_MIN == 6, "the sentences above name these bounds");
