/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a ref's name by the rules of git-check-ref-format(1). A server refuses other
 * names, or reads them in its own way. */
#include "git/ref.h"

#include "vethguard/git/body.h"

static bool component_is_sound(struct slice c)
{
	return c.n > 0 && c.p[0] != '.' && !slice_ends_with(c, SLICE(".lock"));
}

static bool bytes_are_sound(struct slice ref)
{
	static const struct slice never = {" ~^:?*[\\\x7f", 9};

	for (size_t i = 0; i < ref.n; i++) {
		char before = i ? ref.p[i - 1] : '/';

		if ((unsigned char)ref.p[i] <= ' ' || slice_find_byte(never, ref.p[i]) >= 0 ||
		        (ref.p[i] == '.' && before == '.') || (ref.p[i] == '{' && before == '@'))
			return false;
	}
	return true;
}

bool ref_is_sound(struct slice ref)
{
	struct slice rest = ref;
	size_t components = 0;
	ptrdiff_t slash;

	if (ref.n > GIT_REF_MAX || !slice_starts_with(ref, SLICE("refs/")) ||
	        !bytes_are_sound(ref) || ref.p[ref.n - 1] == '.')
		return false;
	do {
		slash = slice_find_byte(rest, '/');
		if (!component_is_sound(slice_of(rest.p, slash < 0 ? rest.n : (size_t)slash)))
			return false;
		components++;
		rest = slice_of(rest.p + slash + 1, rest.n - (size_t)(slash + 1));
	} while (slash >= 0);
	return components >= 3;
}
