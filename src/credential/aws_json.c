/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict reader with one cursor whose first fault sticks. A counter bounds the nesting and a bit
 * for each level remembers the kind of bracket, so no function here is recursive.
 */
#include "credential/aws_json.h"
#include "vethguard/credential/aws_keys.h"

static const char broken[] = "The credential's value begins like JSON, but is not JSON.";

struct reader {
	const char *p, *end;
	const char *fault;
};

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

static char peek(struct reader *r)
{
	skip_blanks(r);
	return r->p < r->end ? *r->p : '\0';
}

static bool take(struct reader *r, char c)
{
	if (peek(r) != c)
		return false;
	r->p++;
	return true;
}

/* Takes a string; the result has no quotes, but the escapes as written. */
static struct slice take_string(struct reader *r)
{
	const char *from;

	if (!take(r, '"')) {
		r->fault = broken;
		return SLICE("");
	}
	for (from = r->p; r->p < r->end && *r->p != '"'; r->p++) {
		if ((uint8_t)*r->p < 0x20)
			break;
		if (*r->p == '\\' && ++r->p == r->end)
			break;
	}
	if (r->p == r->end || *r->p != '"') {
		r->fault = broken;
		return SLICE("");
	}
	return slice_of(from, (size_t)(r->p++ - from));
}

/* Skips a number, true, false or null. */
static void take_word(struct reader *r)
{
	const char *from = r->p;

	while (r->p < r->end &&
	        (slice_find_byte(SLICE("+-."), *r->p) >= 0 || (*r->p >= '0' && *r->p <= '9') ||
	                ((*r->p | 0x20) >= 'a' && (*r->p | 0x20) <= 'z')))
		r->p++;
	if (r->p == from)
		r->fault = broken;
}

static struct slice *find(struct aws_json *out, struct slice name)
{
	static const struct {
		const char *name;
		size_t which;
	} names[] = {{"AccessKeyId", 0}, {"SecretAccessKey", 1}, {"SessionToken", 2}, {"Token", 2},
	        {"aws_access_key_id", 0}, {"aws_secret_access_key", 1}, {"aws_session_token", 2},
	        {"access_key", 0}, {"secret_key", 1}, {"security_token", 2}, {"session_token", 2}};
	struct slice *const found[] = {&out->id, &out->secret, &out->token};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, slice_from_string(names[i].name)))
			return found[names[i].which];
	return NULL;
}

/* Takes a member's value that is neither an object nor a list. Where there is no token, Vault's
 * engine gives null and AWS gives "".
 */
static void take_value(struct reader *r, struct slice *into)
{
	struct slice text = SLICE("");

	if (peek(r) == '"')
		text = take_string(r);
	else
		take_word(r);
	if (!into || r->fault || !text.n)
		return;
	for (size_t i = 0; i + 1 < text.n; i++)
		if (text.p[i] == '\\' && text.p[++i] != '/')
			r->fault = "The credential's value has a key, secret or token with an "
			           "escape in it.";
	if (into->n)
		r->fault = "The credential's value has a key, secret or token twice.";
	*into = text;
}

/* Takes a member's name and colon. Returns the slice that its value belongs in, or NULL if nobody
 * wants the value. */
static struct slice *take_name(struct reader *r, struct aws_json *out)
{
	struct slice name = take_string(r);

	if (!r->fault && !take(r, ':'))
		r->fault = broken;
	return r->fault ? NULL : find(out, name);
}

/* Ends objects and lists that end here. Returns true if another member or element follows. */
static bool close_brackets(struct reader *r, unsigned *depth, unsigned objects)
{
	while (*depth && !r->fault) {
		bool object = objects >> (*depth - 1) & 1;

		if (take(r, ','))
			return true;
		if (!take(r, object ? '}' : ']'))
			r->fault = broken;
		--*depth;
	}
	return false;
}

const char *aws_json_read(struct slice text, struct aws_json *out)
{
	struct reader r = {text.p, text.p + text.n, NULL};
	unsigned depth = 0, objects = 0; /* bit i: level i is an object */
	bool more = true;

	*out = (struct aws_json){0};
	while (more && !r.fault) {
		struct slice *into =
		        depth && (objects >> (depth - 1) & 1) ? take_name(&r, out) : NULL;
		char c = peek(&r);

		if (r.fault)
			break;
		if (c != '{' && c != '[') {
			take_value(&r, into);
		} else if (depth == AWS_JSON_DEPTH_MAX) {
			r.fault = "The credential's value is JSON that is nested too deeply.";
		} else {
			r.p++;
			objects = (objects & ~(1u << depth)) | (unsigned)(c == '{') << depth;
			depth++;
			if (peek(&r) != (c == '{' ? '}' : ']'))
				continue;
		}
		if (!r.fault)
			more = close_brackets(&r, &depth, objects);
	}
	skip_blanks(&r);
	return r.fault ? r.fault : r.p < r.end ? broken : NULL;
}
