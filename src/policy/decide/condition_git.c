/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on requests of git over HTTP: the list of refs, fetches, pushes, and Git LFS with its
 * locks. A rule names repositories by their paths, and refs that may be pushed.
 * - An allow rule takes requests for its repositories as git and git-lfs write them. Each ref of a
 *   push has to be one of the rule's. A change that may lose commits needs `force`, and so does
 *   moving a tag. Deleting a ref needs `delete`. A tag needs `tags`, or a pattern that begins with
 *   refs/tags/.
 * - A deny rule holds for every request of git for its repositories. If it names refs, it holds
 *   only for pushes to one of them and pushes that cannot be read, and for uploads and locks of
 *   Git LFS that name such a ref or none, or that cannot be read.
 * - The shadow of an ask rule holds for what a deny rule with the same refs holds for, and for the
 *   fetches, lists of refs and locks, and downloads of Git LFS that the ask rule asks about. If it
 *   names no refs, it holds only for these.
 *
 * The server compares the old id of each ref in a push with the ref's present id, as the protocol
 * requires. So the old ids of a push can be believed.
 */
#include "policy/decide/condition_asked.h"
#include "policy/decide/condition_body.h"
#include "policy/decide/git_request.h"
#include "policy/json/json_path.h"
#include "policy/url/pattern.h"
#include "vethguard/policy/body.h"

static const struct slice tags = {"refs/tags/", 10};

/* True if some value of the type matches the text. */
static bool any_value(const struct condition_asked *a, char type, struct slice text,
        bool (*matches)(struct slice pattern, struct slice text))
{
	const struct image_text *values = image_section(a->policy, SECTION_VALUES);

	for (uint32_t i = 0; i < a->condition->value_count; i++) {
		struct slice value = image_slice(a->policy, values[a->condition->first_value + i]);

		if (value.p[0] != type)
			continue;
		if (type != GIT_VALUE_REPOSITORY) /* of a repository the byte belongs to the path */
			value = slice_of(value.p + 1, value.n - 1);
		if (matches(value, text))
			return true;
	}
	return false;
}

static bool is_exactly(struct slice pattern, struct slice text)
{
	return condition_matches(pattern, text, false);
}

static bool resembles(struct slice pattern, struct slice text)
{
	return condition_matches(pattern, text, true);
}

/* --- allow rules: pushes --- */

/* True if the pattern names the ref. Only patterns that begin with refs/tags/ name tags. */
static bool names_ref(struct slice pattern, struct slice ref)
{
	if (slice_starts_with(ref, tags) && !slice_starts_with(pattern, tags))
		return false;
	return is_exactly(pattern, ref);
}

static bool allows_ref(const struct condition_asked *a, struct slice ref)
{
	return any_value(a, GIT_VALUE_PUSH, ref, names_ref) ||
	       (slice_starts_with(ref, tags) && condition_has_type(a, GIT_VALUE_TAGS));
}

static bool allows_change(const struct condition_asked *a, const struct policy_git_command *c)
{
	bool tag = slice_starts_with(c->ref, tags);

	switch (c->change) {
	case POLICY_GIT_CREATES:
	case POLICY_GIT_KEEPS:
		return true;
	case POLICY_GIT_DELETES:
		return condition_has_type(a, GIT_VALUE_DELETE) ||
		       condition_refuse(a, REFUSAL_VALUE, "the ref", c->ref, "may not be deleted");
	case POLICY_GIT_FORWARDS:
		return !tag || condition_has_type(a, GIT_VALUE_FORCE) ||
		       condition_refuse(a, REFUSAL_VALUE, "the tag", c->ref, "may not be moved");
	default:
		return condition_has_type(a, GIT_VALUE_FORCE) ||
		       condition_refuse(a, REFUSAL_VALUE, "the ref", c->ref,
		               tag ? "may not be moved"
		                   : "may not be changed by force: the push does not prove that "
		                     "its new commits follow the old ones");
	}
}

static bool allows_push(const struct condition_asked *a)
{
	const struct policy_body *body = a->request->body;
	const struct policy_git *git = body ? body->git : NULL;

	if (!body || body->kind != POLICY_BODY_GIT_PUSH || !git)
		return condition_refuse(a, REFUSAL_PLACE, "the push", SLICE(""), "cannot be read");
	for (size_t i = 0; i < git->command_count; i++) {
		const struct policy_git_command *c = &git->commands[i];

		if (!allows_ref(a, c->ref))
			return condition_refuse(
			        a, REFUSAL_NAME, "the ref", c->ref, "may not be pushed");
		if (!allows_change(a, c))
			return false;
	}
	for (size_t i = 0; i < git->option_count; i++)
		if (!any_value(a, GIT_VALUE_OPTION, git->options[i], is_exactly))
			return condition_refuse(a, REFUSAL_VALUE, "the push option",
			        git->options[i], "is not allowed");
	return true;
}

/* --- allow rules: Git LFS --- */

/* Returns the text of the body's member `name`, or, unless `inner` is empty, of the member `inner`
 * inside of it. Returns an empty text if the member is not there exactly once, or is no text. */
static struct slice text_at(const struct condition_asked *a, struct slice name, struct slice inner)
{
	const struct json_tree *tree = a->request->body->json;
	const struct json_value *v = json_at(tree, 0);

	if (v->kind != JSON_IS_OBJECT || !json_path_member(tree, v, name, &v) || !v)
		return SLICE("");
	if (inner.n && (v->kind != JSON_IS_OBJECT || !json_path_member(tree, v, inner, &v) || !v))
		return SLICE("");
	return v->kind == JSON_IS_STRING ? json_text(tree, v) : SLICE("");
}

static bool allows_lfs_ref(const struct condition_asked *a)
{
	struct slice ref = text_at(a, SLICE("ref"), SLICE("name"));

	if (!ref.n)
		return condition_refuse(
		        a, REFUSAL_NAME, "the LFS request", SLICE(""), "names no ref");
	return allows_ref(a, ref) ||
	       condition_refuse(a, REFUSAL_NAME, "the ref", ref, "may not be pushed");
}

static bool allows_batch(const struct condition_asked *a)
{
	struct slice operation = text_at(a, SLICE("operation"), SLICE(""));

	if (slice_equals(operation, SLICE("download")))
		return true;
	if (!slice_equals(operation, SLICE("upload")))
		return condition_refuse(
		        a, REFUSAL_PLACE, "the LFS operation", operation, "is not known");
	if (!condition_has_type(a, GIT_VALUE_PUSH))
		return condition_refuse(
		        a, REFUSAL_PLACE, "the repository", SLICE(""), "may not be pushed");
	return allows_lfs_ref(a);
}

/* A request that unlocks with "force" breaks a lock of somebody else. */
static bool allows_unlock(const struct condition_asked *a)
{
	const struct json_tree *tree = a->request->body->json;
	const struct json_value *v = json_at(tree, 0), *force;

	if (v->kind != JSON_IS_OBJECT || !json_path_member(tree, v, SLICE("force"), &force))
		return condition_refuse(
		        a, REFUSAL_PLACE, "the LFS request", SLICE(""), "cannot be read");
	if (force && force->kind != JSON_IS_FALSE && !condition_has_type(a, GIT_VALUE_FORCE))
		return condition_refuse(
		        a, REFUSAL_VALUE, "a lock", SLICE(""), "may not be broken by force");
	return allows_lfs_ref(a);
}

static bool allows_lfs(const struct condition_asked *a, enum git_service service)
{
	const struct policy_body *body = a->request->body;

	if (service == GIT_LFS_LOCKS && slice_equals(a->request->method, SLICE("GET")))
		return !body;
	if (!slice_equals(a->request->method, SLICE("POST")) || !body ||
	        body->kind != POLICY_BODY_JSON || a->request->query.n)
		return condition_refuse(
		        a, REFUSAL_PLACE, "the LFS request", SLICE(""), "cannot be read");
	if (service == GIT_LFS_BATCH)
		return allows_batch(a);
	if (!condition_has_type(a, GIT_VALUE_PUSH))
		return condition_refuse(
		        a, REFUSAL_PLACE, "the repository", SLICE(""), "may not be pushed");
	if (service == GIT_LFS_VERIFY)
		return json_at(body->json, 0)->kind == JSON_IS_OBJECT;
	return service == GIT_LFS_UNLOCK ? allows_unlock(a) : allows_lfs_ref(a);
}

/* --- allow rules --- */

static bool allows_refs(const struct condition_asked *a)
{
	const struct policy_request *r = a->request;

	if (!slice_equals(r->method, SLICE("GET")) || r->body)
		return condition_refuse(a, REFUSAL_KIND, "the request", SLICE(""),
		        "is not one of git's smart HTTP protocol or of Git LFS");
	if (slice_equals(r->query, SLICE("service=git-upload-pack")))
		return true;
	if (!slice_equals(r->query, SLICE("service=git-receive-pack")))
		return condition_refuse(a, REFUSAL_PLACE, "the request", SLICE(""),
		        "is not one of git's smart HTTP protocol or of Git LFS");
	return condition_has_type(a, GIT_VALUE_PUSH) ||
	       condition_refuse(a, REFUSAL_PLACE, "the repository", SLICE(""), "may not be pushed");
}

static bool allows_post(const struct condition_asked *a, enum git_service service)
{
	const struct policy_request *r = a->request;

	if (!slice_equals(r->method, SLICE("POST")) || r->query.n)
		return condition_refuse(a, REFUSAL_KIND, "the request", SLICE(""),
		        "is not one of git's smart HTTP protocol or of Git LFS");
	if (service == GIT_PUSH)
		return condition_has_type(a, GIT_VALUE_PUSH)
		               ? allows_push(a)
		               : condition_refuse(a, REFUSAL_PLACE, "the repository", SLICE(""),
		                         "may not be pushed");
	return (r->body && r->body->kind == POLICY_BODY_GIT_FETCH && r->body->git) ||
	       condition_refuse(a, REFUSAL_PLACE, "the fetch", SLICE(""), "cannot be read");
}

static bool allows(const struct condition_asked *a)
{
	struct slice repository, bare;
	enum git_service service = git_request_read(a->request->path, false, &repository);

	if (service == GIT_NONE || !git_request_is_plain(repository))
		return condition_refuse(a, REFUSAL_KIND, "the request", SLICE(""),
		        "is not one of git's smart HTTP protocol or of Git LFS");
	bare = git_request_bare(repository, false);
	if (!any_value(a, GIT_VALUE_REPOSITORY, bare, pattern_matches))
		return condition_refuse(a, REFUSAL_KIND, "the repository",
		        slice_of(bare.p + 1, bare.n - 1), "is not allowed");
	if (service == GIT_REFS)
		return allows_refs(a);
	return service >= GIT_LFS_BATCH ? allows_lfs(a, service) : allows_post(a, service);
}

/* --- deny rules --- */

static bool denies_push(const struct condition_asked *a)
{
	const struct policy_body *body = a->request->body;

	if (!body)
		return false;
	if (body->kind != POLICY_BODY_GIT_PUSH || !body->git)
		return true;
	for (size_t i = 0; i < body->git->command_count; i++)
		if (any_value(a, GIT_VALUE_PUSH, body->git->commands[i].ref, resembles))
			return true;
	return false;
}

/* A request of Git LFS that names no ref may be for any ref, so the rule holds. */
static bool denies_lfs(const struct condition_asked *a, enum git_service service)
{
	const struct policy_body *body = a->request->body;
	struct slice ref;

	if (!body || service == GIT_LFS_VERIFY)
		return false;
	if (body->kind != POLICY_BODY_JSON)
		return true;
	if (service == GIT_LFS_BATCH &&
	        slice_equals(text_at(a, SLICE("operation"), SLICE("")), SLICE("download")))
		return false;
	ref = text_at(a, SLICE("ref"), SLICE("name"));
	return !ref.n || any_value(a, GIT_VALUE_PUSH, ref, resembles);
}

static bool names_repository(const struct condition_asked *a, struct slice repository)
{
	return !condition_has_type(a, GIT_VALUE_REPOSITORY) ||
	       any_value(a, GIT_VALUE_REPOSITORY, repository, resembles) ||
	       any_value(a, GIT_VALUE_REPOSITORY, git_request_bare(repository, true), resembles);
}

/* True if the ask rule may ask about the request, as some server reads it, although the request is
 * no push, upload or change of a lock. A push begins with lists of refs (git-receive-pack) and of
 * locks (verify); an ask rule without refs does not ask about those. */
static bool may_be_asked(const struct condition_asked *a, enum git_service service)
{
	const struct policy_request *r = a->request;
	const bool push = condition_has_type(a, GIT_VALUE_PUSH);

	switch (service) {
	case GIT_FETCH:
		return true;
	case GIT_REFS:
		return push || !slice_equals(r->query, SLICE("service=git-receive-pack"));
	case GIT_LFS_BATCH:
		return r->body && (r->body->kind != POLICY_BODY_JSON ||
		                          !slice_equals(text_at(a, SLICE("operation"), SLICE("")),
		                                  SLICE("upload")));
	case GIT_LFS_LOCKS:
		return !slice_equals(r->method, SLICE("POST"));
	case GIT_LFS_VERIFY:
		return push;
	default:
		return false;
	}
}

static bool denies_at(const struct condition_asked *a, struct slice path)
{
	const bool asks = (a->rule->flags & RULE_ASK) != 0;
	struct slice repository;
	enum git_service service = git_request_read(path, true, &repository);

	if (service == GIT_NONE || !names_repository(a, repository))
		return false;
	if (asks && may_be_asked(a, service))
		return true;
	if (!condition_has_type(a, GIT_VALUE_PUSH))
		return !asks;
	if (service == GIT_PUSH)
		return denies_push(a);
	return service >= GIT_LFS_BATCH && denies_lfs(a, service);
}

bool condition_git(const struct policy *policy, const struct policy_request *request,
        const struct image_rule *rule, const struct image_condition *condition)
{
	const struct condition_asked a = {policy, request, rule, condition};

	return (rule->flags & RULE_DENY) != 0 ? condition_denies(&a, denies_at) : allows(&a);
}
