/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HashiCorp Vault and OpenBao: reads one field of a secret (/v1/PATH). If the policy gives a role
 * instead of a token, a login comes first: by AppRole, or by a signed token (JWT, which Kubernetes
 * gives too). The engine KV version 2 puts the fields one level deeper than all others.
 *
 * A secret that an engine makes on request has a lease. The supervisor keeps the lease's id, and
 * starts this program again to renew the lease (argument ".renew") or to end it (".revoke"). A
 * lease that was got with a login's token ends with that token, so it is not renewed: another
 * secret is read.
 */
#include <stdio.h>
#include <string.h>

#include "fetch/services/services.h"

#define FIELD_MAX (FETCH_SECRET_MAX + 64)

static bool make_field(char *out, size_t out_size, const char *name, struct slice value)
{
	return snprintf(out, out_size, "%s: %.*s", name, SLICE_ARG(value)) < (int)out_size;
}

/* Calls /v1PATH with the token (empty: none). */
static json_t *call(const struct fetch_request *request, struct https *https, const char *method,
        const char *path, struct slice token, struct slice body, char fault[HTTPS_TEXT_MAX])
{
	static char token_field[FIELD_MAX], namespace_field[HTTPS_URL_MAX];
	const struct slice namespace = fetch_argument(request, "namespace");
	const char *fields[5] = {"X-Vault-Request: true", "Content-Type: application/json"};
	char url[HTTPS_URL_MAX];
	size_t n = 2;
	json_t *answer = NULL;

	snprintf(fault, HTTPS_TEXT_MAX, "the request to it is too long");
	if (token.n)
		fields[n++] = token_field;
	if (namespace.n)
		fields[n++] = namespace_field;
	if ((!token.n || make_field(token_field, sizeof(token_field), "X-Vault-Token", token)) &&
	        (!namespace.n || make_field(namespace_field, sizeof(namespace_field),
	                                 "X-Vault-Namespace", namespace)) &&
	        fetch_url(request, path, url, sizeof(url)))
		answer = https_json(https,
		        &(struct https_call){
		                .method = method, .url = url, .fields = fields, .body = body},
		        fault);
	secret_wipe(token_field, sizeof(token_field));
	return answer;
}

/* Makes the body of a login: AppRole's two ids, or a role and the signed token. */
static json_t *login_body(const struct fetch_request *request)
{
	const struct slice role_id = fetch_argument(request, "role_id");
	const struct slice role = fetch_argument(request, "role");

	if (role_id.n)
		return json_pack("{s:s%, s:s%}", "role_id", role_id.p, role_id.n, "secret_id",
		        request->secret.p, request->secret.n);
	return json_pack("{s:s%, s:s%}", "role", role.p, role.n, "jwt", request->secret.p,
	        request->secret.n);
}

/* Returns the answer of the login, whose auth.client_token is the token. */
static json_t *log_in(
        const struct fetch_request *request, struct https *https, char fault[HTTPS_TEXT_MAX])
{
	struct slice at = fetch_argument(request, "auth_path");
	json_t *body = login_body(request);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	char path[HTTPS_URL_MAX];
	json_t *answer = NULL;

	if (!at.n)
		at = fetch_argument(request, "role_id").n ? SLICE("approle") : SLICE("jwt");
	snprintf(path, sizeof(path), "/v1/auth/%.*s/login", SLICE_ARG(at));
	snprintf(fault, HTTPS_TEXT_MAX, "the role, or the secret, is not UTF-8");
	if (text) {
		answer = call(
		        request, https, "POST", path, SLICE(""), slice_from_string(text), fault);
		secret_wipe(text, strlen(text));
		free(text);
	}
	json_decref(body);
	return answer;
}

/* A lease has an id, and ends at the latest with the token that it was given to. Without one (both
 * versions of KV) lease_duration is only how often one may look: the policy's ttl counts. */
static void take_lease(struct fetched *out, const json_t *answer, const json_t *login)
{
	const json_t *token_lives =
	        json_object_get(json_object_get(login, "auth"), "lease_duration");
	const char *id = json_string_value(json_object_get(answer, "lease_id"));
	uint32_t lease_s;

	if (!id || !*id)
		return;
	if (strlen(id) <= MESSAGE_LEASE_MAX)
		snprintf(out->lease, sizeof(out->lease), "%s", id);
	out->renewable = !login && json_is_true(json_object_get(answer, "renewable"));
	fetched_lives(out, json_object_get(answer, "lease_duration"));
	lease_s = out->ttl_s;
	fetched_lives(out, token_lives);
	if (lease_s && lease_s < out->ttl_s)
		out->ttl_s = lease_s;
}

/* login: the login's answer that the token came from, or NULL. */
static bool read_secret(const struct fetch_request *request, struct https *https,
        struct slice token, const json_t *login, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	struct slice at = fetch_argument(request, "path"), field = fetch_argument(request, "field");
	char path[HTTPS_URL_MAX], name[HTTPS_TEXT_MAX];
	const json_t *data, *inner;
	json_t *answer;
	bool taken;

	snprintf(path, sizeof(path), "/v1/%.*s", SLICE_ARG(at));
	snprintf(name, sizeof(name), "%.*s", field.n ? (int)field.n : 5,
	        field.n ? field.p : "value");
	answer = call(request, https, "GET", path, token, SLICE(""), fault);
	data = json_object_get(answer, "data");
	inner = json_object_get(data, "data");
	if (json_is_object(inner) && json_is_object(json_object_get(data, "metadata")))
		data = inner; /* KV version 2 */
	taken = answer && fetched_take(json_object_get(data, name), name, out, fault);
	if (taken)
		take_lease(out, answer, login);
	json_decref(answer);
	return taken;
}

/* Sends POST /v1/sys/leases/VERB for the lease. */
static json_t *call_lease(const struct fetch_request *request, struct https *https,
        const char *verb, struct slice token, struct slice lease, char fault[HTTPS_TEXT_MAX])
{
	json_t *body = json_pack("{s:s%}", "lease_id", lease.p, lease.n), *answer = NULL;
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, path[64];

	snprintf(path, sizeof(path), "/v1/sys/leases/%s", verb);
	snprintf(fault, HTTPS_TEXT_MAX, "no memory");
	if (text)
		answer = call(request, https, "POST", path, token, slice_from_string(text), fault);
	free(text);
	json_decref(body);
	return answer;
}

/* Renews the lease. Near its maximum a lease is extended by less and less. If the renewal gives
 * less than half of the original time, another secret is read instead; so it is after any refusal,
 * unless the service wants no requests for a while. */
static bool renew(const struct fetch_request *request, struct https *https, struct slice token,
        struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const struct slice lease = fetch_argument(request, ".renew");
	uint64_t lasts_s = 0;
	json_t *answer = call_lease(request, https, "renew", token, lease, fault);

	(void)slice_to_u64(fetch_argument(request, ".lasts"), UINT32_MAX, &lasts_s);
	if (!answer && https_retry_s(https))
		return false;
	fetched_lives(out, json_object_get(answer, "lease_duration"));
	out->same = answer && out->ttl_s > 0 && out->ttl_s >= lasts_s / 2;
	out->renewable = out->same && json_is_true(json_object_get(answer, "renewable"));
	json_decref(answer);
	if (!out->same) {
		out->ttl_s = 0;
		return read_secret(request, https, token, NULL, out, fault);
	}
	snprintf(out->lease, sizeof(out->lease), "%.*s", SLICE_ARG(lease));
	return true;
}

/* Does what was asked for, with the token. */
static bool act(const struct fetch_request *request, struct https *https, struct slice token,
        const json_t *login, struct fetched *out, char fault[HTTPS_TEXT_MAX])
{
	const struct slice ends = fetch_argument(request, ".revoke");
	json_t *answer;

	if (!ends.n)
		return fetch_argument(request, ".renew").n
		               ? renew(request, https, token, out, fault)
		               : read_secret(request, https, token, login, out, fault);
	answer = call_lease(request, https, "revoke", token, ends, fault);
	json_decref(answer);
	/* 400 or 404 mean that the lease has ended. */
	return answer || https_status(https) == 400 || https_status(https) == 404;
}

bool vault_fetch(const struct fetch_request *request, struct https *https, struct fetched *out,
        char fault[HTTPS_TEXT_MAX])
{
	json_t *login;
	const char *token;
	bool taken;

	if (!fetch_argument(request, "role_id").n && !fetch_argument(request, "role").n)
		return act(request, https, request->secret, NULL, out, fault);
	login = log_in(request, https, fault);
	token = json_string_value(json_object_get(json_object_get(login, "auth"), "client_token"));
	if (login && !token)
		snprintf(fault, HTTPS_TEXT_MAX, "its answer to the login has no token");
	taken = token && act(request, https, slice_from_string(token), login, out, fault);
	json_decref(login);
	return taken;
}
