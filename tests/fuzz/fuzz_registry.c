/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a registry's WWW-Authenticate, as a query to its token service, and as the path of a
 * request to the registry. Beyond memory safety: what is read lies within its bounds, a list that
 * is read ends, and what is allowed names only repositories that the policy names.
 */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/policy/registry.h"
#include "vethguard/policy/url.h"
#include "vethguard/wire/challenge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct policy_registry registry = {.realm = {"https://a.test/token", 20},
        .service = {"s", 1},
        .actions = {"pull", 4},
        .repositories = {"acme/* tools/**", 15}};

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void try_challenge(struct slice text)
{
	struct challenge c;
	struct slice rest = text;
	int rc;

	while ((rc = challenge_next(&rest, &c)) > 0) {
		require(c.scheme.n && c.scheme.p >= text.p && c.scheme.p + c.scheme.n <= rest.p);
		require(rest.p + rest.n == text.p + text.n);
		require(c.realm.n <= CHALLENGE_REALM_MAX &&
		        c.parameters <= CHALLENGE_PARAMETERS_MAX);
		policy_is_realm(&registry, c.realm);
	}
	require(rc == 0 || rc == -EBADMSG);
	require(rc < 0 || rest.n == 0);
}

static void try_query(struct slice text)
{
	const struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("a.test"),
	        .port = 443,
	        .method = SLICE("GET"),
	        .path = SLICE("/token"),
	        .query = text};

	require(policy_registry_gives_token(&registry, &request));
	if (policy_registry_check(&registry, &request))
		return;
	require(memmem(text.p, text.n, "acme", 4) || memmem(text.p, text.n, "tools", 5) ||
	        memchr(text.p, '%', text.n));
	require(!memmem(text.p, text.n, "evil:", 5));
}

static void try_path(struct slice text)
{
	char path[POLICY_PATH_MAX];
	struct policy_request request = {.scheme = POLICY_HTTPS,
	        .host = SLICE("r.test"),
	        .port = 443,
	        .method = SLICE("GET"),
	        .query = SLICE("")};
	size_t n;

	if (!text.n || text.p[0] != '/' || !url_canonical_path(text, path, sizeof(path), &n))
		return;
	request.path = slice_of(path, n);
	if (policy_registry_check(&registry, &request))
		return;
	require(n <= 4 || slice_starts_with(request.path, SLICE("/v2/acme/")) ||
	        slice_starts_with(request.path, SLICE("/v2/tools/")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_of(size ? data : (const uint8_t *)"", size);

	try_challenge(text);
	try_query(text);
	try_path(text);
	return 0;
}
