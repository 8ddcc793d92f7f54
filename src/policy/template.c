/* SPDX-License-Identifier: Apache-2.0 */
/* Fields with templates. A credential keeps them as lines: "NAME: TEMPLATE". */
#include "vethguard/policy/registry.h"

bool policy_field_next(struct slice *rest, struct slice *name, struct slice *template)
{
	ptrdiff_t end = slice_find_byte(*rest, '\n');
	size_t n = end < 0 ? rest->n : (size_t)end;
	struct slice line = slice_of(rest->p, n);
	ptrdiff_t colon = slice_find_byte(line, ':');

	if (!line.n || colon < 0)
		return false;
	*name = slice_of(line.p, (size_t)colon);
	*template = slice_trim(slice_of(line.p + colon + 1, line.n - (size_t)colon - 1));
	n += end >= 0;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

bool policy_template_next(struct slice *rest, struct slice *literal, struct slice *name)
{
	const char *mark = rest->n ? memmem(rest->p, rest->n, "${", 2) : NULL;
	size_t before = mark ? (size_t)(mark - rest->p) : rest->n, n;
	ptrdiff_t end;

	*literal = slice_of(rest->p, before);
	*name = SLICE("");
	if (before) {
		*rest = slice_of(rest->p + before, rest->n - before);
		return true;
	}
	end = slice_find_byte(*rest, '}');
	if (!rest->n || end < 0)
		return false;
	*name = slice_of(rest->p + 2, (size_t)end - 2);
	n = (size_t)end + 1;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

/* Takes a word and the space after it off s. */
static struct slice take_word(struct slice *s)
{
	ptrdiff_t space = slice_find_byte(*s, ' ');
	size_t n = space < 0 ? s->n : (size_t)space;
	struct slice word = slice_of(s->p, n);

	n += space >= 0;
	*s = slice_of(s->p + n, s->n - n);
	return word;
}

void policy_hmac(const struct policy_credential *credential, struct policy_hmac *out)
{
	struct slice rest = credential->field, secret;

	out->base64 = slice_equals(take_word(&rest), SLICE("base64"));
	secret = take_word(&rest);
	out->secret = slice_equals(secret, SLICE("base64")) ? POLICY_SECRET_BASE64
	              : slice_equals(secret, SLICE("hex"))  ? POLICY_SECRET_HEX
	                                                    : POLICY_SECRET_TEXT;
	out->query = take_word(&rest);
	out->sign = rest;
}

void policy_registry(const struct policy_credential *credential, struct policy_registry *out)
{
	struct slice rest = credential->field;

	out->realm = take_word(&rest);
	out->service = take_word(&rest);
	out->actions = rest;
	out->repositories = credential->prefix;
}

bool policy_replaces_in(const struct policy_credential *credential, struct slice place)
{
	struct slice rest = credential->field;

	while (rest.n)
		if (slice_equals(take_word(&rest), place))
			return true;
	return false;
}
