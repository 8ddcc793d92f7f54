/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on calls of gRPC and gRPC-Web, by their paths: "/SERVICE/METHOD" (gRPC over HTTP/2,
 * "Requests"). The messages are not read.
 * - An allow rule takes a POST to such a path without a query, whose only content type is gRPC's.
 *   The same path with another type is another protocol (Connect, JSON transcoding).
 * - A deny rule looks at the last two segments of the path, in letters of any case and in each
 *   reading, whatever the content type is.
 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/condition_body.h"

/* True if a value of the type matches, or there is none of that type. */
static bool names(const struct condition_asked *a, char type, struct slice name, bool fold)
{
	return !condition_has_type(a, type) || condition_has_value(a, type, name, fold);
}

/* Finds the last two segments of the path. *alone: there are no others. Returns false if there are
 * not two. */
static bool split(struct slice path, struct slice *service, struct slice *method, bool *alone)
{
	size_t begin, middle = path.n;

	while (middle > 0 && path.p[middle - 1] != '/')
		middle--;
	if (middle < 2)
		return false;
	begin = middle - 1;
	while (begin > 0 && path.p[begin - 1] != '/')
		begin--;
	*service = slice_of(path.p + begin, middle - 1 - begin);
	*method = slice_of(path.p + middle, path.n - middle);
	*alone = begin == 1;
	return service->n > 0 && method->n > 0;
}

static bool is_plain(struct slice name)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && slice_find_byte(SLICE("._-"), c) < 0)
			return false;
	}
	return true;
}

/* True for "application/grpc", "application/grpc-web" and "application/grpc-web-text", each also
 * with "+" and the name of a format. */
static bool is_grpc(struct slice type)
{
	static const struct slice begin = {"application/grpc", 16};
	struct slice rest;
	ptrdiff_t plus;

	if (type.n < begin.n || !slice_equals_ignoring_case(slice_of(type.p, begin.n), begin))
		return false;
	rest = slice_of(type.p + begin.n, type.n - begin.n);
	plus = slice_find_byte(rest, '+');
	if (plus >= 0) {
		struct slice format = slice_of(rest.p + plus + 1, rest.n - (size_t)plus - 1);

		if (!format.n || !is_plain(format))
			return false;
		rest.n = (size_t)plus;
	}
	return rest.n == 0 || slice_equals_ignoring_case(rest, SLICE("-web")) ||
	       slice_equals_ignoring_case(rest, SLICE("-web-text"));
}

static bool has_type(const struct policy_request *request)
{
	const struct policy_fields *fields = request->fields;
	struct policy_field field;
	unsigned alike = 0, right = 0;
	size_t at = 0;

	while (fields && fields->next(fields->context, &at, &field)) {
		if (!condition_names_alike(field.name, SLICE("content-type")))
			continue;
		alike++;
		right += is_grpc(slice_trim(field.value));
	}
	return alike == 1 && right == 1;
}

bool condition_grpc_call(
        const struct policy_request *r, struct slice *service, struct slice *method)
{
	bool alone;

	return split(r->path, service, method, &alone) && alone && is_plain(*service) &&
	       is_plain(*method) && !r->query.n && slice_equals(r->method, SLICE("POST")) &&
	       has_type(r);
}

static bool allows(const struct condition_asked *a)
{
	struct slice service, method;

	if (!condition_grpc_call(a->request, &service, &method))
		return condition_refuse(
		        a, REFUSAL_KIND, "the request", SLICE(""), "is not a call of gRPC");
	if (!names(a, GRPC_VALUE_SERVICE, service, false))
		return condition_refuse(
		        a, REFUSAL_PLACE, "the service", service, "may not be called");
	return names(a, GRPC_VALUE_METHOD, method, false) ||
	       condition_refuse(a, REFUSAL_NAME, "the method", method, "may not be called");
}

static bool denies_at(const struct condition_asked *a, struct slice path)
{
	struct slice service, method;
	bool alone;

	return split(path, &service, &method, &alone) &&
	       names(a, GRPC_VALUE_SERVICE, service, true) &&
	       names(a, GRPC_VALUE_METHOD, method, true);
}

bool condition_grpc(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	const struct condition_asked a = {policy, request, rule, condition};

	return (rule->flags & RULE_DENY) != 0 ? condition_denies(&a, denies_at) : allows(&a);
}
