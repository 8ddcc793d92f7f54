/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each field is authorized by itself, because a server honors at most one of them. If one server
 * honored one field for the method and another for the path, the outcome would be neither of the
 * requests that were authorized, so both kinds together are refused.
 */
#include "proxy/exchange/override.h"

#include "proxy/http/http.h"

struct override {
	struct slice name;
	bool path;
};

static const struct override *find_override(struct slice name)
{
	static const struct override overrides[] = {
	        {{"x-http-method-override", 22}, false},
	        {{"x-http-method", 13}, false},
	        {{"x-method-override", 17}, false},
	        {{"x-original-url", 14}, true},
	        {{"x-rewrite-url", 13}, true},
	};

	for (size_t i = 0; i < sizeof(overrides) / sizeof(*overrides); i++)
		if (http_names_alike(name, overrides[i].name))
			return &overrides[i];
	return NULL;
}

bool override_is_named(struct slice name)
{
	return find_override(name) != NULL;
}

/* Puts the method or path that the field asks for into *question; text has POLICY_PATH_MAX bytes
 * and holds it. False: the field cannot be interpreted. */
static bool read_override(
        struct policy_request *question, const struct override *o, struct slice value, char *text)
{
	ptrdiff_t mark = slice_find_byte(value, '?');
	size_t n;

	if (o->path) {
		if (!url_canonical_path(slice_of(value.p, mark < 0 ? value.n : (size_t)mark), text,
		            POLICY_PATH_MAX, &n))
			return false;
		question->path = slice_of(text, n);
		question->query =
		        mark < 0 ? SLICE("")
		                 : slice_of(value.p + mark + 1, value.n - (size_t)mark - 1);
		return true;
	}
	if (!value.n || value.n > POLICY_METHOD_MAX)
		return false;
	for (n = 0; n < value.n; n++) { /* servers that honor it read it in capitals */
		bool small = value.p[n] >= 'a' && value.p[n] <= 'z';

		text[n] = (char)(small ? value.p[n] - 'a' + 'A' : value.p[n]);
	}
	question->method = slice_of(text, n);
	return true;
}

/* Refuses unless what the field asks for is allowed too, with the same credential. */
static void authorize_one(const struct policy *policy, const struct policy_request *question,
        const struct override *o, struct slice value, struct verdict *j)
{
	struct policy_request other = *question;
	struct policy_decision decision;
	char text[POLICY_PATH_MAX];

	if (!read_override(&other, o, value, text)) {
		verdict_refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_SMUGGLING,
		        "a header field asks for another method or path, but cannot be read");
		return;
	}
	policy_decide(policy, &other, &decision);
	j->decision.lists_tools |= decision.lists_tools;
	j->decision.needs_messages |= decision.needs_messages;
	if (decision.needs_body) {
		j->allowed = false;
		j->needs_body = true;
	} else if (decision.verdict != POLICY_ALLOW) {
		j->decision = decision;
		verdict_refuse(j, EVENT_CAUSE_POLICY, EVENT_FINDING_SMUGGLING,
		        "a header field asks for another method or path, which the policy denies");
	} else if (decision.observed) {
		j->decision = decision;
	} else if (decision.credential != j->decision.credential ||
	           decision.seals != j->decision.seals) {
		verdict_refuse(j, EVENT_CAUSE_BINDING, EVENT_FINDING_BINDING_MISMATCH,
		        "a header field asks for another method or path, for which this credential "
		        "is not meant");
	}
}

void override_authorize(const struct policy *policy, const struct policy_request *question,
        const struct http_fields *fields, struct verdict *j)
{
	bool path = false, method = false;

	for (size_t i = 0; i < fields->count && j->allowed && !j->decision.observed; i++) {
		const struct http_field *f = &fields->items[i];
		const struct override *o = f->known == HTTP_OTHER ? find_override(f->name) : NULL;

		if (!o)
			continue;
		authorize_one(policy, question, o, f->value, j);
		path |= o->path;
		method |= !o->path;
	}
	if (path && method && j->allowed && !j->decision.observed)
		verdict_refuse(j, EVENT_CAUSE_CLIENT, EVENT_FINDING_SMUGGLING,
		        "header fields ask for another method and for another path");
}
