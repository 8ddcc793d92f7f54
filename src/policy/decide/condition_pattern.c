/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of conditions: '*' stands for any bytes, everything else for itself. */
#include "policy/decide/condition.h"

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

static bool same(char a, char b, bool fold)
{
	return a == b || (fold && lower(a) == lower(b));
}

/* Goes back to the last '*' only: an earlier one cannot match a byte that this one cannot. */
bool condition_matches(struct slice pattern, struct slice text, bool fold)
{
	size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

	while (t < text.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			from = t;
		} else if (p < pattern.n && same(pattern.p[p], text.p[t], fold)) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

bool condition_names_alike(struct slice a, struct slice b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++) {
		char x = a.p[i] == '_' ? '-' : lower(a.p[i]);

		if (x != (b.p[i] == '_' ? '-' : lower(b.p[i])))
			return false;
	}
	return true;
}
