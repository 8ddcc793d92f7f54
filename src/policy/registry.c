/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a registry tells its client by a challenge (401) where to get a token and
 * for what scope to ask. Nothing of the challenge is believed here. A request for a token may ask
 * only for repositories and actions that the policy names. The same holds for each request to the
 * registry itself, because a token service may hand out more than was asked for.
 *
 * Whatever two servers could read in two ways is refused: other parameters, escapes in names, ';'
 * between parameters, names of repositories that contain a word of the API.
 */
#include "vethguard/policy/registry.h"

#include "policy/url/pattern.h"
#include "vethguard/policy/body.h"
#include "vethguard/policy/url.h"

static const char no_repository[] =
        "the request names no repository as the API of registries does (/v2/NAME/...)";
static const char other_repository[] =
        "the request is for a repository that the credential's policy does not name";
static const char other_action[] =
        "the request is for an action (pull, push or delete) that the credential's policy does not "
        "name";
static const char other_mount[] =
        "the request mounts a blob from a repository that the credential's policy does not name";
static const char no_scope[] = "the token is asked for without a scope";
static const char other_scope[] =
        "the token is asked for with a scope that is not repository:NAME:ACTIONS";
static const char many_scopes[] = "the token is asked for with more than 16 scopes";
_Static_assert(POLICY_SCOPES_MAX == 16, "as the text says");
static const char other_parameter[] =
        "the token is asked for with other parameters than scope, service, account, client_id and "
        "offline_token";
static const char same_parameter[] =
        "the token is asked for with a parameter that appears twice and is not scope";

/* Takes the text up to the next separator off rest. Returns false at the end. */
static bool take_part(struct slice *rest, char separator, struct slice *part)
{
	ptrdiff_t at = slice_find_byte(*rest, separator);
	size_t n = at < 0 ? rest->n : (size_t)at;

	if (!rest->p || !rest->n)
		return false;
	*part = slice_of(rest->p, n);
	n += at >= 0;
	*rest = slice_of(rest->p + n, rest->n - n);
	return true;
}

/* Each part of a name begins and ends with a letter or digit, or in a pattern with '*'. */
bool policy_is_repository(struct slice name, bool is_pattern)
{
	bool edge = false; /* the previous byte may end a part */

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		              (is_pattern && c == '*');
		bool first = i == 0 || name.p[i - 1] == '/';

		if (!letter && (first || (c == '/' ? !edge : c != '.' && c != '_' && c != '-')))
			return false;
		edge = letter;
	}
	return edge && name.n <= POLICY_REPOSITORY_MAX;
}

/* --- what the policy allows --- */

static bool lists(struct slice list, struct slice word)
{
	struct slice part;

	while (take_part(&list, ' ', &part))
		if (slice_equals(part, word))
			return true;
	return false;
}

/* Returns "/NAME": repositories are matched as paths are, which begin with '/'. */
static struct slice as_path(struct slice name, char path[POLICY_REPOSITORY_MAX + 1])
{
	path[0] = '/';
	memcpy(path + 1, name.p, name.n);
	return slice_of(path, name.n + 1);
}

static bool names_repository(const struct policy_registry *registry, struct slice name)
{
	char path[POLICY_REPOSITORY_MAX + 1], pattern[POLICY_REPOSITORY_MAX + 1];
	struct slice rest = registry->repositories, part;

	if (!policy_is_repository(name, false))
		return false;
	while (take_part(&rest, ' ', &part))
		if (part.n <= POLICY_REPOSITORY_MAX &&
		        pattern_matches(as_path(part, pattern), as_path(name, path)))
			return true;
	return false;
}

/* --- requests for a token --- */

/* Checks "repository:NAME:ACTION,ACTION". */
static const char *check_scope(const struct policy_registry *registry, struct slice scope)
{
	struct slice type = SLICE("repository:"), name, actions, action;
	size_t n = scope.n;

	if (!slice_starts_with(scope, type))
		return other_scope;
	while (scope.p[n - 1] != ':')
		n--;
	if (n <= type.n + 1 || n == scope.n)
		return other_scope;
	name = slice_of(scope.p + type.n, n - 1 - type.n);
	actions = slice_of(scope.p + n, scope.n - n);
	if (!names_repository(registry, name))
		return other_repository;
	if (actions.p[actions.n - 1] == ',')
		return other_scope;
	while (take_part(&actions, ',', &action))
		if (!lists(registry->actions, action))
			return other_action;
	return NULL;
}

/* Checks all scopes of one parameter: it may name several, with a space between. */
static const char *check_scopes(
        const struct policy_registry *registry, struct slice value, size_t *count)
{
	char decoded[POLICY_QUERY_MAX];
	struct slice rest, scope;
	const char *why = NULL;

	if (value.n > sizeof(decoded))
		return other_scope;
	rest = url_parameter_decode(value, decoded);
	while (!why && take_part(&rest, ' ', &scope))
		why = ++*count > POLICY_SCOPES_MAX ? many_scopes : check_scope(registry, scope);
	return why;
}

static const struct slice parameter_names[] = {
        {"scope", 5}, {"service", 7}, {"account", 7}, {"client_id", 9}, {"offline_token", 13}};
enum { SCOPE, SERVICE, PARAMETER_COUNT = sizeof(parameter_names) / sizeof(*parameter_names) };

/* Returns the index of the parameter's name; PARAMETER_COUNT: another name, or an escaped one. */
static size_t which(struct slice pair)
{
	ptrdiff_t equals = slice_find_byte(pair, '=');
	size_t i = 0;

	while (i < PARAMETER_COUNT &&
	        (equals < 0 || !slice_equals(slice_of(pair.p, (size_t)equals), parameter_names[i])))
		i++;
	return i;
}

static bool is_service(const struct policy_registry *registry, struct slice value)
{
	char decoded[POLICY_TOKEN_SERVICE_MAX * 3];

	return value.n <= sizeof(decoded) &&
	       slice_equals(url_parameter_decode(value, decoded), registry->service);
}

static const char *check_token(
        const struct policy_registry *registry, const struct policy_request *request)
{
	size_t seen[PARAMETER_COUNT + 1] = {0}, scopes = 0, count = 0;
	struct slice rest = request->query, pair;
	const char *why = NULL;

	if (!slice_equals(request->method, SLICE("GET")) || request->body)
		return "a registry's token is asked for by GET, without a body";
	/* Some servers end a parameter at ';'. */
	if (rest.n > POLICY_QUERY_MAX || slice_find_byte(rest, ';') >= 0 ||
	        !url_escapes_are_sound(rest))
		return other_parameter;
	while (!why && url_parameter_next(&rest, &pair)) {
		size_t i = which(pair);

		if (i == PARAMETER_COUNT || ++count > POLICY_PARAMETERS_MAX)
			return other_parameter;
		if (seen[i]++ && i != SCOPE)
			return same_parameter;
		if (i == SCOPE)
			why = check_scopes(registry, url_parameter_value(pair), &scopes);
		else if (i == SERVICE && !is_service(registry, url_parameter_value(pair)))
			why = "the token is asked for a service that the credential's policy does "
			      "not name";
	}
	if (!why && !seen[SERVICE])
		return "the token is asked for without the parameter service";
	return why || scopes ? why : no_scope;
}

/* --- requests to the registry --- */

static struct slice action_of(struct slice method)
{
	static const struct {
		struct slice method, action;
	} rows[] = {{{"GET", 3}, {"pull", 4}}, {{"HEAD", 4}, {"pull", 4}},
	        {{"POST", 4}, {"push", 4}}, {{"PUT", 3}, {"push", 4}}, {{"PATCH", 5}, {"push", 4}},
	        {{"DELETE", 6}, {"delete", 6}}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (slice_equals(method, rows[i].method))
			return rows[i].action;
	return SLICE("");
}

static bool is_api_word(struct slice segment)
{
	static const struct slice words[] = {
	        {"manifests", 9}, {"blobs", 5}, {"tags", 4}, {"referrers", 9}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (slice_equals(segment, words[i]))
			return true;
	return false;
}

/* Finds the repository in "NAME/manifests/REFERENCE" and the like. Returns false for a path with
 * two such words or with an escape: servers could read it in two ways. */
static bool find_repository(struct slice path, struct slice *name)
{
	size_t words = 0;

	if (slice_find_byte(path, '%') >= 0)
		return false;
	for (size_t at = 0; at < path.n; at++) {
		struct slice segment = pattern_segment_at(path, at);

		if (at > 0 && is_api_word(segment)) {
			*name = slice_of(path.p, at - 1);
			words++;
		}
		at += segment.n;
	}
	return words == 1 && policy_is_repository(*name, false);
}

/* Checks the repository from which a blob is mounted. Without "from", a registry may look for the
 * blob in all repositories. */
static const char *check_mount(const struct policy_registry *registry, struct slice query)
{
	char decoded[3 * POLICY_REPOSITORY_MAX];
	bool mounts = false, named = false;
	struct slice pair;

	while (url_parameter_next(&query, &pair)) {
		struct slice value = url_parameter_value(pair);

		mounts |= url_parameter_resembles(pair, SLICE("mount"));
		if (!url_parameter_resembles(pair, SLICE("from")))
			continue;
		named = true;
		if (value.n > sizeof(decoded) || !url_escapes_are_sound(value) ||
		        !names_repository(registry, url_parameter_decode(value, decoded)) ||
		        !lists(registry->actions, SLICE("pull")))
			return other_mount;
	}
	return mounts && !named ? other_mount : NULL;
}

static const char *check_use(
        const struct policy_registry *registry, const struct policy_request *request)
{
	struct slice path = request->path, api = SLICE("/v2/"), name = SLICE("");
	struct slice action = action_of(request->method);

	if (slice_equals(path, SLICE("/v2")) || slice_equals(path, api))
		return slice_equals(action, SLICE("pull")) ? NULL : no_repository;
	if (!slice_starts_with(path, api) ||
	        !find_repository(slice_of(path.p + api.n, path.n - api.n), &name))
		return no_repository;
	if (!names_repository(registry, name))
		return other_repository;
	if (!action.n || !lists(registry->actions, action))
		return other_action;
	return check_mount(registry, request->query);
}

/* --- both --- */

bool policy_is_realm(const struct policy_registry *registry, struct slice text)
{
	char path[POLICY_PATH_MAX];
	struct url realm, other;
	size_t n;

	return text.n <= POLICY_REALM_MAX && url_parse(registry->realm, &realm) &&
	       url_parse(text, &other) && other.scheme == POLICY_HTTPS && !other.query.n &&
	       slice_find_byte(text, '?') < 0 && slice_find_byte(text, '#') < 0 &&
	       url_canonical_path(other.path, path, sizeof(path), &n) &&
	       slice_equals(realm.path, slice_of(path, n)) &&
	       realm.authority.port == other.authority.port &&
	       slice_equals(slice_of(realm.authority.host, realm.authority.host_n),
	               slice_of(other.authority.host, other.authority.host_n)) &&
	       ip_equals(&realm.authority.address, &other.authority.address);
}

bool policy_registry_gives_token(
        const struct policy_registry *registry, const struct policy_request *request)
{
	struct url realm;

	return request->scheme == POLICY_HTTPS && url_parse(registry->realm, &realm) &&
	       slice_equals(realm.path, request->path) && realm.authority.port == request->port &&
	       slice_equals(
	               slice_of(realm.authority.host, realm.authority.host_n), request->host) &&
	       (request->host.n || ip_equals(&realm.authority.address, &request->address));
}

const char *policy_registry_check(
        const struct policy_registry *registry, const struct policy_request *request)
{
	return policy_registry_gives_token(registry, request) ? check_token(registry, request)
	                                                      : check_use(registry, request);
}
